"""Results of an evaluation: a view over a folder of rows, from which frames, summaries and lists are made on demand."""

from __future__ import annotations

import copy
import shutil
import tempfile
import weakref
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import numpy as np
import pandas as pd
import pyarrow.compute as pc

from jurimetrics.display import View, count
from jurimetrics.errors import InputError
from jurimetrics.frames import read_settings
from jurimetrics.results.parts import questions_of_models
from jurimetrics.results.reading import (
    RECORDED,
    passed,
    read_bill,
    read_calls,
    read_light_scores,
    read_parts,
    read_records,
    read_scores,
    records_with_answers,
    records_without_answers,
)
from jurimetrics.results.saving import check_folder, save_folder
from jurimetrics.results.summary import Totals, count_kinds, notes, summarise, total_up
from jurimetrics.results.thresholds import under_thresholds
from jurimetrics.results.unanswered import unanswered_notes

if TYPE_CHECKING:
    from jurimetrics.records import Record
    from jurimetrics.results.recorded import Declared

F = TypeVar("F")


class Results:
    """What an evaluation gave, kept in a folder of Parquet parts and `settings.json`.

    Frames are read when they are first asked for, and each is given out as a copy. `settings` are read from the folder
    where they are not given. With `temporary` the folder is removed when the last view of it is gone.

    >>> scores = pd.DataFrame({"id": ["1", "2", "3"], "metric": "grade", "judge": "ann", "score": [0.8, None, 0.9]})
    >>> results = Results.from_frame(scores, {"grade": {"range": (0, 1), "threshold": 0.5}})
    >>> results
    Results(3 records, 1 metric, 1 judge, 3 rows: 2 ok, 1 undefined)
    >>> results.summary().loc[0, ["mean", "n", "ok", "undefined", "pass_rate"]].astype(float).round(4).tolist()
    [0.85, 2.0, 2.0, 1.0, 1.0]
    """

    def __init__(
        self, folder: Path | str, settings: Mapping[str, Any] | None = None, *, temporary: bool = False
    ) -> None:
        self.folder = Path(folder)
        self._settings = copy.deepcopy(dict(settings)) if settings is not None else read_settings(self.folder)
        self._frames: dict[str, Any] = {}
        self._owner = _Temporary(self.folder) if temporary else None

    @property
    def settings(self) -> dict[str, Any]:
        """How the results were made (a copy): `metrics` with range, direction and threshold, `judges`, `prompts`, ..."""
        return copy.deepcopy(self._settings)

    @property
    def records(self) -> pd.DataFrame:
        """The records evaluated, one row each; columns as `Record`, `metadata` as JSON text."""
        return self._kept("records", lambda: read_records(self.folder)).copy(deep=False)

    @property
    def scores(self) -> pd.DataFrame:
        """The score frame, one row for each id, variant, metric, judge and repeat; columns as `read_scores` says."""
        frame = self._kept("scores", lambda: read_scores(self.folder, self._settings))
        return frame.assign(passed=passed(frame, self._settings))

    @property
    def calls(self) -> pd.DataFrame:
        """The call frame, one row for each request sent or answer taken from the store; columns as `CallRow`."""
        return self._kept("calls", lambda: read_calls(self.folder)).copy(deep=False)

    def summary(self, level: float = 0.95) -> pd.DataFrame:
        """One line for each metric, judge and variant; `attrs["notes"]` holds what must be read beside it.

        Columns: `metric`, `judge`, `variant`; `mean` with its interval `low`, `high` at `level`, over `n` records with a
        score (repeats averaged first; NaN where there is none) and the `method`; `answered` (share of the rows with an
        answer that are not flagged `no_claims`; NaN where the metric asks for no claims); `asked` rows = `ok` +
        `undefined` + `not_applicable` + `failed`, and `missing`, the share of them without a score; `pass_rate` of the
        scored records with `pass_low` and `pass_high` (NaN without a threshold), `threshold`, `higher_is_better`;
        `disagreement` (mean; of panels); `within_sd`, the standard deviation between repeats of a record in the unit of
        the score, and `flip_rate`, the share of pairs of repeats that differ in pass or fail (NaN without repeats);
        `cost_usd` and `tokens` (shares; NaN if a part is unknown), `at_least_cost` the part that is known; `calls` and
        `cached`, the requests sent and answers from the store that its rows used (one that several metrics share counts
        in each; `totals` counts it once).

        Raises `InputError` for a level outside 0 to 1. Source of the intervals: `mean_estimate`, `share_estimate`.
        """
        if not 0 < level < 1:
            raise InputError(f"level must lie between 0 and 1, not {level:g}")
        table = self._summary(level)
        table.attrs["notes"] = self._notes(table)
        return table

    def notes(self) -> list[str]:
        """What must be read beside the summary: failures, records without an answer, variants that differ in how often
        they answer, judges that gave other scores when asked again or were served by another model on the way, unknown
        costs."""
        return self._notes(self._summary(0.95))

    def totals(self) -> Totals:
        """What the run took and what failed, each call counted once, also those that no row came to use."""
        columns = ["from_store", "cost_usd", "saved_usd", "prompt_tokens", "completion_tokens", "status"]
        calls = self._kept("bill", lambda: read_parts(self.folder, "calls", columns).to_pandas())
        recorded = any(judge.get("kind") == RECORDED for judge in self._settings.get("judges", {}).values())
        return total_up(calls, int((self._light()["status"] == "failed").sum()), recorded)

    def failures(self) -> pd.DataFrame:
        """The rows that failed, the most frequent kind first.

        Columns: `id`, `variant`, `metric`, `judge`, `repeat`, `kind`, `message`, and `of_kind`, how many failed alike.
        """
        columns = ["id", "variant", "metric", "judge", "repeat", "error"]
        frame = read_parts(self.folder, "scores", columns, where=pc.field("status") == "failed").to_pandas()
        parts = [error.partition(": ") for error in frame.pop("error")]
        frame["kind"] = pd.Series([kind for kind, _, _ in parts], dtype=str)
        frame["message"] = pd.Series([message for _, _, message in parts], dtype=str)
        frame["of_kind"] = frame["kind"].map(frame["kind"].value_counts()).astype("int64")
        by = ["of_kind", "kind", "metric", "judge", "variant", "id", "repeat"]
        ordered: pd.DataFrame = frame.sort_values(by, ascending=[False, *[True] * 6], kind="stable")
        return ordered.reset_index(drop=True)

    def disagreements(self) -> pd.DataFrame:
        """The rows of the panel by disagreement, the largest first, with what each judge said side by side.

        Columns: `id`, `variant`, `metric`, `repeat`, `disagreement`, the panel's `score` and `reason`, and for each judge
        `score:<judge>` (NaN where it gave none) and `reason:<judge>` (its error where it failed). Without a panel, for
        two judges or more, `disagreement` is the largest minus the smallest of their scores, and `score` NaN.
        """
        from jurimetrics.results.disagreement import side_by_side

        panel = read_parts(self.folder, "scores", ["judge"], where=pc.field("panel")).column("judge")
        return side_by_side(self.scores, panel.unique().to_pylist())

    def claims(self) -> pd.DataFrame:
        """Every claim, fact of a reference and sentence that was checked, one row for each row of `scores` that holds it.

        Columns: `id`, `variant`, `metric`, `judge`, `repeat`; `against`, what it was checked against ("contexts",
        "reference", or "answer" for facts of a reference); `number` from 1 within that; `claim`; `verdict` in the words
        of the task; `reason`; `undecided` (no majority; NA where the details do not say); `evidence`, a list of
        (document from 1, quote); and `vote:<judge>` with `disagreement`, the entropy of the votes in bits (0: all agree;
        NaN below two votes). Votes stand in the rows of a panel that votes on verdicts (missing for a member that
        failed); without a panel in the rows of all judges that were asked about the same claim.

        >>> from jurimetrics import BaselineJudge, evaluate
        >>> record = {"answer": "Madrid is in Spain. It has 9 rivers.", "contexts": ["Madrid is in Spain."]}
        >>> evaluate([record], ["faithfulness"], BaselineJudge(), store=None).claims()[["number", "verdict"]].values.tolist()
        [[1, 'supported'], [2, 'unknown']]
        """
        from jurimetrics.results.claims import claims

        return claims(self.scores, self._settings)

    def indicators(self, per: Literal["record", "variant"] = "record", judge: str | None = None) -> pd.DataFrame:
        """What the answers themselves took, and the relevance of what was retrieved for them; no part of any score.

        For each record: `id`, `variant`, `answer_latency_s` (seconds), `answer_prompt_tokens`,
        `answer_completion_tokens`, `answer_tokens` (both), `answer_cost_usd` (US dollars), as the records have them, and
        `context_relevance`, the score of `context_precision` by `judge` (by default the panel or the only judge; where
        several judges leave no choice it stays unknown), 0 to 1. Unknown is NaN or NA, never 0.

        For each variant: one row for each `indicator` with the `mean` of the `n` known of `records`; `total`, NaN where
        any is unknown, and `at_least`, the sum of the known (NaN where none is, and for the relevance).

        What judging took stands in `scores`, `calls` and `totals`. Raises `InputError` for another `per`.

        >>> from jurimetrics import BaselineJudge, evaluate
        >>> records = [{"id": 1, "answer": "Yes.", "latency_s": 0.5}, {"id": 2, "answer": "No.", "latency_s": 1.5}]
        >>> evaluate(records, ["fluency"], BaselineJudge(), store=None).indicators("variant").loc[0, ["mean", "n"]].tolist()
        [1.0, 2.0]
        """
        from jurimetrics.results.indicators import FROM_RECORDS, per_record, per_variant

        if per not in ("record", "variant"):
            raise InputError(f"indicators are per 'record' or per 'variant', not {per!r}")
        records = self._kept("answers", lambda: read_parts(self.folder, "records", FROM_RECORDS).to_pandas())
        found = per_record(records, self._light(), self._settings, judge)
        return found if per == "record" else per_variant(found)

    def highlight(self, id: str, variant: str = "", judge: str | None = None) -> View:  # noqa: A002 - the column's name
        """One record for a notebook cell: its answer with what is not supported marked, all scores, each claim with
        verdict, reason, quotes and who voted what, and the documents with the quoted passages marked.

        `judge` is a name in `judge`; by default the panel or the only judge, else the first by name. Of repeats, the
        verdicts of the first are shown. Long texts are cut around the marks. Everything is escaped. Raises `InputError`
        where there is no such record or judge.

        >>> frame = pd.DataFrame({"id": ["7"], "metric": "grade", "judge": "ann", "score": [0.5], "reason": "<b>fair</b>"})
        >>> "&lt;b&gt;fair&lt;/b&gt;" in Results.from_frame(frame).highlight("7").html
        True
        """
        from jurimetrics.results.highlight import highlight

        return highlight(self.scores, self.records, self._settings, (id, variant), judge)

    def highlights_html(self, limit: int = 50) -> str:
        """The same of the `limit` records with the worst scores as one page of HTML, without scripts or outside parts.

        The order is that of the mean of a record's scores as shares of each metric's range; records without any score
        come last. Raises `InputError` for a limit below 1.
        """
        from jurimetrics.results.highlight import highlights_html

        return highlights_html(self.scores, self.records, self._settings, limit)

    def azure(self, judge: str | None = None, repeat: int = 0) -> list[dict[str, Any]]:
        """One flat dictionary for each record, in the order of `records`, with the keys of Azure's evaluators.

        For each X of relevance, groundedness, fluency, coherence and similarity that was evaluated (by itself, else
        batched): `X`, `gpt_X` and `X_score` (the value, 1 to 5), `X_reason`, `X_result`, `X_threshold`, `X_passed` (True,
        False or None) and `X_status`; for f1 `f1_score` and the same but for the copies. `judge` is a name in `judge`, by
        default the panel or else the only judge; `repeat` counts from 0.

        `X_result` is "pass" or "fail", None without a threshold; where there is no value (None) it is "not_applicable"
        with status "skipped" (the record lacks what is needed, or there was nothing to rate), or "error" with status
        "error" where the row failed; the reason then says why. Pass means at least the threshold, as in Azure's examples,
        and f1 passes at .5, since its scale ends at 1.

        Raises `InputError` where none of these metrics was evaluated, several judges leave no choice, or judge or repeat
        is not there. Source: Azure AI evaluators, general purpose and question answering (2025-05-19).

        >>> frame = pd.DataFrame({"id": ["1"], "metric": "fluency", "judge": "ann", "score": [2.0]})
        >>> Results.from_frame(frame, {"fluency": {"range": (1, 5), "threshold": 3}}).azure()[0]["fluency_result"]
        'fail'
        """
        from jurimetrics.results.exports import azure

        return azure(self.scores, self.records, self._settings, judge, repeat)

    def pinecone(self, judge: str | None = None, repeat: int = 0) -> list[dict[str, Any]]:
        """One dictionary for each record, in the order of `records`, in the shape of Pinecone's alignment endpoint.

        `metrics`: `correctness`, `completeness`, `alignment`, 0 to 1, None where there is no value or it was not
        evaluated. `reasoning.evaluated_facts`: the facts of the reference, each `{"fact": {"content"}, "entailment"}`
        with "entailed", "contradicted" or "neutral". `usage`: prompt, completion and total tokens, the shares of the
        alignment rows of that record and judge rounded to whole tokens (for a panel of its members; answers from the
        store took none), None where unknown. `judge` and `repeat` as for `azure`.

        Raises `InputError` as `azure` does. Source: Pinecone's API, evaluate an answer (2026-07).

        >>> frame = pd.DataFrame({"id": ["1"], "metric": "alignment", "judge": "ann", "score": [0.4]})
        >>> Results.from_frame(frame).pinecone()[0]["metrics"]
        {'correctness': None, 'completeness': None, 'alignment': 0.4}
        """
        from jurimetrics.results.exports import pinecone

        return pinecone(self.scores, self.records, self._settings, judge, repeat)

    def with_thresholds(self, thresholds: Mapping[str, float | None]) -> Results:
        """The same results under other thresholds (None: no threshold); nobody is asked.

        Raises `InputError` for a metric that is not there and for a threshold outside the metric's range.
        """
        other = Results(self.folder, under_thresholds(self._settings, thresholds))
        other._frames, other._owner = self._frames, self._owner
        return other

    def save(self, folder: Path | str) -> Path:
        """Copy the results into `folder` (made if need be; earlier results there are replaced) and give its path.

        Raises `InputError` where the folder holds anything else.
        """
        return save_folder(self.folder, Path(folder), self._settings)

    @classmethod
    def load(cls, folder: Path | str) -> Results:
        """Results that were saved, or that an evaluation left in its folder, even one that was killed.

        Raises `InputError` where the folder, its settings or a part is missing, damaged or of another shape.
        """
        path = Path(folder)
        return cls(path, check_folder(path))

    @classmethod
    def from_frame(
        cls,
        scores: pd.DataFrame,
        metrics: Mapping[str, Declared] | None = None,
        *,
        records: Iterable[Record] | None = None,
    ) -> Results:
        """Results of scores that anybody's judges gave elsewhere.

        `scores` has the columns `id`, `metric`, `judge`, `score` (numbers; missing where there is none), and may have
        `variant`, `group`, `reason`, `repeat`, `error` ("kind: message", for a row that failed), `flags` (a list, or words
        with commas between), `details` (an object, or its JSON text) and `disagreement`; it is not changed.
        A missing score without an error is `undefined`, or `not_applicable` where a column `status` says so; a status
        that contradicts score and error is refused. `metrics` maps a metric's name to a `Metric`, to a mapping with
        `range`, `higher_is_better`, `threshold`, or to None; a range that is not given is taken from the data, and the
        settings say so (`range_from_data`). `records` are what was scored (`load_records`), so that answers can be shown
        beside scores; one for each id and variant. What the judging took is unknown.

        Raises `InputError` for a missing column, a score without its record, a missing or double key, a score that is no
        number or lies outside the declared range, a declared metric that has no rows.

        >>> frame = pd.DataFrame({"id": [1, 2], "metric": "grade", "judge": "ann", "score": [2, 5]})
        >>> Results.from_frame(frame).settings["metrics"]["grade"]["range"]
        [2.0, 5.0]
        """
        from jurimetrics.results.recorded import write_recorded

        folder = Path(tempfile.mkdtemp(prefix="jurimetrics-"))
        try:
            write_recorded(folder, scores, metrics or {}, records)
        except BaseException:
            shutil.rmtree(folder, ignore_errors=True)
            raise
        return cls(folder, temporary=True)

    def __repr__(self) -> str:
        rows = self._light()
        counts = ", ".join(f"{number:,} {status}" for status, number in rows["status"].value_counts().items())
        variants = rows["variant"].nunique()
        together = " and their panel" if self._settings.get("panel") else ""
        parts = [
            count(len(rows[["id", "variant"]].drop_duplicates()), "record"),
            *([count(variants, "variant")] if variants > 1 else []),
            count(rows["metric"].nunique(), "metric"),
            count(len(self._settings.get("judges") or {}), "judge") + together,
            f"{count(len(rows), 'row')}: {counts or 'none'}",
        ]
        return f"Results({', '.join(parts)})"

    def _repr_html_(self) -> str:
        from jurimetrics.display import results_html

        return results_html(self)

    def _kept(self, name: str, read: Callable[[], F]) -> F:
        """A frame that is read once; shared by views that differ only in thresholds."""
        if name not in self._frames:
            self._frames[name] = read()
        kept: F = self._frames[name]
        return kept

    def _notes(self, summary: pd.DataFrame) -> list[str]:
        failed = read_parts(self.folder, "scores", ["error"], where=pc.field("status") == "failed")
        answered_by = ["judge", "model_returned", "fingerprint"]
        calls = self._kept("answered_by", lambda: read_parts(self.folder, "calls", answered_by).to_pandas())
        kinds = count_kinds(failed.column("error").to_pylist())
        rows = self._light()
        lacking = self._kept("lacking", lambda: records_without_answers(self.folder))
        unanswered = unanswered_notes(rows, lacking, self._settings)
        questions = questions_of_models(self.folder) if self._settings.get("reference_models") else {}
        found = notes(summary, self.totals(), kinds, calls, self._settings, unanswered, questions)
        if rows["variant"].nunique() > 1 and not rows.groupby("id")["variant"].nunique().gt(1).any():
            found.append(
                "No id has answers of two variants, so variants cannot be compared record by record: give what belongs "
                "together one id (without a column for it the id is the row number)."
            )
        return found

    def _light(self) -> pd.DataFrame:
        frame = self._kept("light", lambda: read_light_scores(self.folder, self._settings))
        return frame.assign(passed=passed(frame, self._settings))

    def _summary(self, level: float) -> pd.DataFrame:
        rows = self._light()
        taken = self._kept("taken", lambda: read_bill(self.folder, rows))
        if any(one.get("asks_claims") for one in self._settings["metrics"].values()):
            answered = self._kept("answered", lambda: pd.MultiIndex.from_frame(records_with_answers(self.folder)))
            with_answer = pd.MultiIndex.from_frame(rows[["id", "variant"]]).isin(answered)
        else:
            with_answer = np.zeros(len(rows), dtype=bool)
        return summarise(rows, taken, with_answer, self._settings, level)


class _Temporary:
    """Removes a folder when the last view of it is gone."""

    def __init__(self, folder: Path) -> None:
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
