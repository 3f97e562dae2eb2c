"""The report: one HTML file that needs nothing else, is read without scripts, and holds other people's text as text."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from jurimetrics.errors import InputError
from jurimetrics.report.bill import billed, failed
from jurimetrics.report.compared import compared, traded
from jurimetrics.report.facts import Facts, gather
from jurimetrics.report.headline import default_title, head
from jurimetrics.report.judged import judged
from jurimetrics.report.made import made, noted, prompted, written
from jurimetrics.report.markup import put
from jurimetrics.report.style import STYLE
from jurimetrics.report.summarised import summarised
from jurimetrics.report.worst import worst as worst_answers
from jurimetrics.results.pages import page_path, write_page

if TYPE_CHECKING:
    import pandas as pd

    from jurimetrics.calibrate.agreement import Agreement
    from jurimetrics.calibrate.calibration import Calibration
    from jurimetrics.results import Results
    from jurimetrics.variants.compare import Comparison

MOST_WORST = 200
_PARTS = (
    ("summary", "Summary", summarised),
    ("comparison", "Comparison", compared),
    ("tradeoff", "Quality against cost", traded),
    ("judges", "Judges", judged),
    ("worst", "Worst answers", worst_answers),
    ("failures", "Failures", failed),
    ("cost", "Cost", billed),
    ("notes", "Notes", noted),
    ("written", "What wrote the answers", written),
    ("settings", "Settings", made),
    ("prompts", "Prompts", prompted),
)


def report(
    source: Results,
    path: Path | str,
    *,
    comparison: Comparison | None = None,
    calibration: Calibration | Sequence[Calibration] | None = None,
    agreement: Agreement | None = None,
    labels: pd.DataFrame | Path | str | None = None,
    baseline: str | None = None,
    primary: Sequence[str] | None = None,
    judge: str | None = None,
    title: str | None = None,
    worst: int = 10,
) -> Path:
    """Write `source` as one HTML file to `path` (made with its folder, or replaced) and give the path.

    The page begins with what was found, in sentences that say no more than their intervals. Then come means with
    intervals, n, answered and missing shares, and what passes; the comparison of variants, and quality against cost and
    latency where the records know them; the judges and how far they can be trusted; the `worst` answers (0 to 200) with what
    is not supported marked and the reasons of each judge; failures by kind, cost and tokens ("at least" where a part is
    unknown), notes, settings and prompts. It needs no script and nothing from elsewhere; texts of others appear as text.

    `comparison`: what `compare` or `compare_runs` gave; without it two variants or more are compared here, with `baseline`
    (None: all pairs) and the `primary` metrics, decided on beforehand (None: all). `judge`: whose scores are read first; by
    default the panel's or those of the only judge, else of the first that is declared, which the page says. `labels`: what
    people said (`load_labels`, or what that reads): `agreement`, unless it is given, corrected means and differences follow
    as far as it is declared how the records were chosen.
    `calibration`: one or several of `calibrate`. `title`: by default the variants compared, or how many answers were
    evaluated.

    Raises `InputError` where `source` is not Results, `path` does not end in .html or cannot be written, a judge or variant
    is not there, the comparison is of other results, or no labelled row has a score.

    >>> import tempfile
    >>> from jurimetrics import BaselineJudge, evaluate
    >>> record = {"answer": "Madrid is in Spain.", "contexts": ["Madrid is in Spain."]}
    >>> results = evaluate([record], ["faithfulness"], BaselineJudge(), store=None)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     page = report(results, Path(folder, "report.html"), title="Is <it> so?")
    ...     "<h1 dir=\\"auto\\">Is &lt;it&gt; so?</h1>" in page.read_text(encoding="utf-8")
    True
    """
    from jurimetrics.results import Results

    target = check_options(path, worst)
    if not isinstance(source, Results):
        raise InputError(f"report: expected Results, found {type(source).__name__}")
    if title is not None and not isinstance(title, str):
        raise InputError(f"report: title must be a text, not {title!r}")
    facts = gather(
        source, comparison=comparison, calibration=calibration, agreement=agreement, labels=labels, baseline=baseline,
        judge=judge, worst=worst, primary=primary,
    )  # fmt: skip
    return write_page("report", target, page(facts, default_title(facts) if title is None else title))


def check_options(path: Path | str, worst: int) -> Path:
    """The path of a report, once it and `worst` are known to be good. Raises `InputError` otherwise.

    >>> check_options("records.jsonl", 10)
    Traceback (most recent call last):
    jurimetrics.errors.InputError: report: expected a file that ends in .html, not 'records.jsonl'
    """
    target = page_path("report", path)
    if isinstance(worst, bool) or not isinstance(worst, int) or not 0 <= worst <= MOST_WORST:
        raise InputError(f"report: worst must be a whole number from 0 to {MOST_WORST}, not {worst!r}")
    return target


def page(facts: Facts, title: str) -> str:
    """The whole page."""
    parts = [(name, said, part(facts)) for name, said, part in _PARTS]
    there = [(name, said) for name, said, part in parts if part.html]
    links = "".join(f'<li><a href="#{name}">{said}</a></li>' for name, said in there)
    body = "".join(part.html for _, _, part in parts)
    # The style is allowed by its hash: no other one, and none in an attribute, would be heeded.
    allowed = base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode("ascii")
    policy = f"default-src 'none'; style-src 'sha256-{allowed}'; img-src data:; base-uri 'none'; form-action 'none'"
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="referrer" content="no-referrer"><meta name="color-scheme" content="light dark">'
        f"<title>{put(title, 200)}</title><style>{STYLE}</style></head>"
        f'<body class="tex2jax_ignore mathjax_ignore"><main>{head(facts, title).html}'
        f'<nav aria-label="Contents"><ul>{links}</ul></nav>{body}</main></body></html>\n'
    )
