"""The looks of a report: on a phone, on a desk, in the dark and on paper. Every kind of mark has its own underline, and
every verdict its word, for whoever sees no colour."""

from __future__ import annotations

_COLOURS = """
:root{color-scheme:light dark;--paper:#fff;--ink:#1d2327;--soft:#50575e;--rule:#d5dade;--tint:#f3f5f7;--key:#1b4965;
--good:#2d6a4f;--bad:#a4161a;--warn:#7a4f00;--mind:#fdf5e3;--doubt:#5b4b9a;
--red:#fbd5d5;--amber:#fde9c4;--violet:#e8e6f3;--green:#dcefe3}
@media screen and (prefers-color-scheme:dark){:root{--paper:#14181b;--ink:#e4e8eb;--soft:#aab3ba;--rule:#353d44;
--tint:#1d2328;--key:#8cc4e6;--good:#86d1a8;--bad:#ff9d98;--warn:#f0c36a;--mind:#2b2416;--doubt:#c0b4f2;
--red:#5c2326;--amber:#544016;--violet:#3a3358;--green:#1f4632}}
"""
_PAGE = """
*{box-sizing:border-box}
body{margin:0;background:var(--paper);color:var(--ink);font:1rem/1.5 system-ui,-apple-system,"Segoe UI",sans-serif;
overflow-wrap:anywhere;text-align:start}
main{max-width:66rem;margin:0 auto;padding:1rem 1rem 3rem}
h1{font-size:1.7rem;line-height:1.2;margin:.5rem 0 .3rem}
h2{font-size:1.3rem;line-height:1.25;margin:2.6rem 0 .6rem;padding-top:.5rem;border-top:2px solid var(--key)}
h3{font-size:1.05rem;margin:1.8rem 0 .4rem}
h4,h5{font-size:.85rem;color:var(--soft);margin:1rem 0 .2rem;font-weight:600}
p{margin:.5rem 0;max-width:46rem}
ul{margin:.5rem 0;padding-left:1.2rem}
li{margin:.2rem 0;max-width:46rem}
a{color:var(--key)}
.jr-about,.jr-aside{color:var(--soft);font-size:.9rem}
.jr-lead{background:var(--tint);border-left:4px solid var(--key);border-radius:4px;padding:.8rem 1rem;margin:1rem 0}
.jr-lead h2,.jr-mind h2{border:0;margin:0 0 .3rem;padding:0;font-size:1.05rem}
.jr-lead ul,.jr-mind ul{margin:0;padding-left:1.1rem}
.jr-mind{background:var(--mind);border-left:4px solid var(--warn);border-radius:4px;padding:.8rem 1rem;margin:1rem 0}
.jr-figures{display:grid;grid-template-columns:repeat(auto-fit,minmax(7.2rem,1fr));gap:.6rem;margin:1rem 0}
.jr-figures div{border:1px solid var(--rule);border-radius:6px;padding:.5rem .7rem}
.jr-figures dt{font-size:.78rem;line-height:1.3;color:var(--soft)}
.jr-figures dd{margin:0;font-size:1.2rem;font-weight:600;font-variant-numeric:tabular-nums}
nav ul{display:flex;flex-wrap:wrap;gap:.2rem 1.1rem;list-style:none;padding:0;margin:1.2rem 0 0;font-size:.92rem}
nav li{margin:0}nav a{display:inline-block;padding:.25rem 0}
details{border:1px solid var(--rule);border-radius:6px;padding:.2rem .8rem;margin:.6rem 0}
summary{cursor:pointer;padding:.35rem 0;font-weight:600}
details[open]{padding-bottom:.6rem}
"""
_TABLES = """
.jr-table{overflow-x:auto;margin:.8rem 0}
table{border-collapse:collapse;width:100%;font-size:.88rem;line-height:1.4;font-variant-numeric:tabular-nums}
caption{text-align:start;color:var(--soft);font-size:.85rem;font-weight:600;padding:0 0 .3rem}
th,td{vertical-align:top;text-align:start;padding:.4rem .8rem .4rem 0;border-bottom:1px solid var(--rule)}
thead th{vertical-align:bottom;font-size:.8rem;line-height:1.25;color:var(--soft);font-weight:600}
tbody th{font-weight:600}
tr>:last-child{padding-right:0}
th.jr-number,td.jr-number{text-align:end}
td.jr-number{white-space:nowrap}
td.jr-number .jm-beside{white-space:normal}
thead th{overflow-wrap:break-word}
.jr-name{min-width:9rem;max-width:16rem}.jr-text{min-width:10rem}.jr-word{min-width:5rem}
@media screen and (min-width:900px){.jr-name{min-width:13rem}.jr-word{min-width:8rem}}
td ul{margin:0;padding-left:1rem}td li{margin:0 0 .2rem}
.jr-decided{font-weight:600}.jr-open{color:var(--soft)}
.jr-figure{overflow-x:auto;width:fit-content;max-width:100%;margin:1rem 0;background:#fff;border-radius:6px;padding:.3rem}
.jr-figure img{display:block;max-width:100%;height:auto}
@media screen and (max-width:640px){
.jr-stack{overflow-x:visible}
.jr-stack thead{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.jr-stack table,.jr-stack tbody,.jr-stack caption{display:block}
.jr-stack tr{display:grid;grid-template-columns:repeat(6,minmax(0,1fr));gap:.15rem .8rem;padding:.6rem 0;
border-bottom:1px solid var(--rule)}
.jr-stack th,.jr-stack td{display:block;border:0;padding:0;min-width:0;max-width:none;text-align:start;white-space:normal}
.jr-stack th.jr-name,.jr-stack td.jr-text,.jr-stack td.jr-word{grid-column:1/-1}
.jr-stack td.jr-word::before{display:inline;margin-right:.5em}
.jr-stack td.jr-number{grid-column:span 3;text-align:start;white-space:normal}
.jr-stack td::before{content:attr(data-label);display:block;font-size:.74rem;line-height:1.3;color:var(--soft)}
.jr-figure img{max-width:30rem}
h1{font-size:1.4rem}
}
"""
_RECORDS = """
.jr-record{border:1px solid var(--rule);border-radius:6px;padding:.2rem 1rem 1rem;margin:1rem 0}
.jr-record h3{margin-top:.8rem}
.jm-text{white-space:pre-wrap;line-height:1.65;max-width:50rem}
mark{color:inherit;padding:.05em .1em;border-radius:2px;-webkit-print-color-adjust:exact;print-color-adjust:exact}
mark.jm-intrinsic{background:var(--red);border-bottom:3px double var(--bad)}
mark.jm-extrinsic{background:var(--amber);border-bottom:2px dashed var(--warn)}
mark.jm-unsupported{background:var(--amber);border-bottom:2px solid var(--warn)}
mark.jm-undecided{background:var(--violet);border-bottom:2px dotted var(--doubt)}
mark.jm-quote{background:var(--green);border-bottom:1px solid var(--good)}
sup{font-size:.68em;line-height:0;color:var(--soft);margin-left:.15em}
ul.jm-claims{list-style:none;margin:0;padding:0}
ul.jm-claims li{padding:.4em 0;border-top:1px solid var(--rule);max-width:none;font-size:.92rem}
.jm-verdict{font-size:.82em;font-weight:600;white-space:nowrap;padding:.05em .4em;border:1px solid;border-radius:3px}
.jm-is-supported,.jm-is-entailed{color:var(--good)}.jm-is-contradicted,.jm-is-unsupported{color:var(--bad)}
.jm-is-unknown,.jm-is-neutral{color:var(--warn)}.jm-is-undecided{color:var(--doubt)}.jm-is-no_check{color:var(--soft)}
.jm-why{display:block;color:var(--soft)}
.jm-beside{display:block;font-size:.85em;font-weight:400;color:var(--soft)}
h5 .jm-beside{display:inline;margin-left:.5em}
.jm-gap{color:var(--soft);font-style:italic}
.jm-legend{font-size:.85rem;color:var(--soft)}.jm-legend span{display:inline-block;margin-right:1.2em}
"""
_PAPER = """
@page{size:A4;margin:14mm 13mm}
@media print{
:root{color-scheme:light}
html{font-size:9.5pt}
body{line-height:1.4}
main{max-width:none;padding:0}
nav{display:none}
h2{margin-top:1.6rem}h3{margin-top:1.2rem}
h2,h3,h4,h5,caption,summary{break-after:avoid}
tr,figure,.jr-figure,.jr-lead,.jr-mind,.jr-figures,li{break-inside:avoid}
thead{display:table-header-group}
.jr-table,.jr-figure{overflow:visible}
table{font-size:.82rem}thead th{font-size:.76rem}
th,td{padding:2pt 5pt 2pt 0}
.jr-name{min-width:8rem}.jr-text{min-width:7rem}.jr-word{min-width:4.5rem}
.jr-figure{padding:0}.jr-figure img{max-width:150mm}
.jr-figures{grid-template-columns:repeat(6,1fr)}
.jr-record{border:0;border-top:1px solid #999;border-radius:0;padding:0}
details{border:0;padding:0}
details:not([open])>summary::after{content:" (folded, so not printed)";font-weight:400}
p,li,.jm-text{max-width:none}
}
"""
STYLE = _COLOURS + _PAGE + _TABLES + _RECORDS + _PAPER
