"""The looks of highlighted answers. Each kind of mark has its own underline and a word behind it, for whoever sees no
colour, prints, or reads where styles are taken out."""

from __future__ import annotations

_RULES = """
.jm{font:15px/1.5 system-ui,sans-serif;color:#1d2327;background:#fff;max-width:54rem;padding:.2rem .8rem;
overflow-wrap:anywhere;text-align:start}
.jm h1{font-size:1.4em;margin:.6em 0 .2em}.jm h2{font-size:1.15em;margin:0 0 .4em}
.jm h3{font-size:.82em;color:#50575e;margin:1.1em 0 .25em;font-weight:600}
.jm p{margin:.3em 0}
.jm .jm-record{border:1px solid #c9ced3;border-radius:6px;padding:.8rem 1rem 1rem;margin:1rem 0}
.jm .jm-text{white-space:pre-wrap;line-height:1.75}
.jm mark{color:inherit;padding:.05em .1em;border-radius:2px;-webkit-print-color-adjust:exact;print-color-adjust:exact}
.jm mark.jm-intrinsic{background:#fbd5d5;border-bottom:3px double #a4161a}
.jm mark.jm-extrinsic{background:#fde9c4;border-bottom:2px dashed #92600a}
.jm mark.jm-unsupported{background:#fde9c4;border-bottom:2px solid #92600a}
.jm mark.jm-undecided{background:#e8e6f3;border-bottom:2px dotted #5b4b9a}
.jm mark.jm-quote{background:#dcefe3;border-bottom:1px solid #2d6a4f}
.jm sup{font-size:.68em;line-height:0;color:#50575e;margin-left:.15em}
.jm table{border-collapse:collapse;table-layout:auto;width:100%;font-size:.92em;line-height:1.45;color:inherit;margin:0;
border:0}
.jm th,.jm td{text-align:start;vertical-align:top;padding:.3em .6em .3em 0;border:0;border-top:1px solid #e3e6e9;
background:#fff;line-height:inherit;white-space:normal}
.jm th{overflow-wrap:break-word;max-width:16em;font-size:.85em;font-weight:600;color:#50575e;border-top:0}
.jm tr{background:#fff;border:0}
.jm .jm-name{overflow-wrap:break-word;width:1%;max-width:16em}
.jm ul.jm-claims{list-style:none;margin:0;padding:0}
.jm ul.jm-claims li{padding:.4em 0;border-top:1px solid #e3e6e9;break-inside:avoid}
.jm .jm-verdict{font-size:.82em;font-weight:600;white-space:nowrap;padding:.05em .4em;border:1px solid;border-radius:3px}
.jm .jm-is-supported,.jm .jm-is-entailed{color:#2d6a4f}.jm .jm-is-contradicted,.jm .jm-is-unsupported{color:#a4161a}
.jm .jm-is-unknown,.jm .jm-is-neutral{color:#92600a}.jm .jm-is-undecided{color:#5b4b9a}.jm .jm-is-no_check{color:#50575e}
.jm .jm-why{display:block;font-size:.92em;color:#3c434a}
.jm .jm-beside{display:block;font-size:.85em;color:#50575e;font-weight:400}
.jm h3 .jm-beside{display:inline;margin-left:.5em}
.jm .jm-gap{color:#50575e;font-style:italic}
.jm .jm-legend{font-size:.85em;color:#3c434a}.jm .jm-legend span{display:inline-block;margin-right:1.2em}
@media(max-width:600px){.jm thead{display:none}.jm td{display:block;padding-right:0}
.jm td+td{border-top:0;padding-top:0}.jm td.jm-name{display:inline-block;width:auto;padding-right:.8em;font-weight:600}
.jm td.jm-name .jm-beside{display:inline;margin-left:.5em}.jm tr{display:block;border-top:1px solid #e3e6e9}
.jm td.jm-name{border-top:0}}
@media print{.jm{max-width:none;font-size:11px}.jm .jm-record{border:0;border-top:1px solid #999;border-radius:0}
.jm h2,.jm h3{break-after:avoid}}
"""
# The class thrice: a notebook's own rules for tables, headings and lists would be the stronger ones.
STYLE = _RULES.replace(".jm ", ".jm.jm.jm ")
PAGE_STYLE = "body{margin:0;background:#fff}.jm{margin:0 auto}"
