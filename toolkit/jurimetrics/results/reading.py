"""Frames out of a folder of results: Parquet parts joined, put in order, and what follows from rows computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from jurimetrics.errors import InputError
from jurimetrics.frames import SCHEMAS, CallRow, to_table
from jurimetrics.results.shares import ROW_KEY, Bill, bill

SCORE_COLUMNS = (
    "id", "variant", "metric", "judge", "repeat", "group", "score", "passed", "status", "reason", "error", "flags",
    "disagreement", "details", "judge_calls", "judge_prompt_tokens", "judge_completion_tokens", "judge_cost_usd",
    "judge_latency_s", "cached_calls",
)  # fmt: skip
RECORDED = "recorded"
"""The kind of a judge whose scores came from elsewhere: what it took is unknown."""
COMPUTED = "computed"
"""What stands for the judge of scores that are computed: those that no judge gave."""


def read_parts(
    folder: Path | str, table: str, columns: Sequence[str] | None = None, where: pc.Expression | None = None
) -> pa.Table:
    """The parts of one table (`records`, `scores`, `calls`, `uses`), in the order they were written.

    Only `columns` are read, and only rows `where` holds are kept, part by part. No part is an empty table. Raises
    `InputError` for a part that cannot be read or lacks a column.
    """
    import pyarrow.parquet as pq

    schema = SCHEMAS[table]
    wanted = list(columns or schema.names)
    found = []
    for path in sorted((Path(folder) / table).glob("part-*.parquet")):
        try:
            part = pq.read_table(path, columns=wanted, partitioning=None, filters=where)
        except (pa.ArrowException, OSError) as fault:
            raise InputError(f"{path}: cannot be read ({str(fault).splitlines()[0]})") from None
        if lacking := [name for name in wanted if name not in part.column_names]:
            raise InputError(f"{path}: lacks the column {lacking[0]!r}; was it written by another version?")
        found.append(part.select(wanted).cast(pa.schema([schema.field(name) for name in wanted])))
    return pa.concat_tables(found) if found else pa.schema([schema.field(name) for name in wanted]).empty_table()


def read_scores(folder: Path | str, settings: Mapping[str, Any]) -> pd.DataFrame:
    """The score frame: one row for each id, variant, metric, judge and repeat that was asked for.

    Columns: `SCORE_COLUMNS`. `score` is NaN unless `status` is "ok"; `passed` is NA unless there is a score and a
    threshold; `flags` lists; `details` JSON text; `judge_calls` and `cached_calls` requests sent and answers taken from
    the store; `judge_prompt_tokens`, `judge_completion_tokens` and `judge_cost_usd` (US dollars) the row's shares, NaN
    where unknown, 0 for rows of a panel and rows that asked nobody; `judge_latency_s` seconds. Rows stand in the order
    of the records, metrics and judges, whatever order they were written in.
    """
    table = read_parts(folder, "scores")
    rows = _frame(table.drop_columns(["flags"]), plain_whole=("repeat",))
    rows["flags"] = pd.Series(table.column("flags").to_pylist(), index=rows.index, dtype=object)
    rows = in_order(rows, folder, settings)
    rows["passed"] = passed(rows, settings)
    for name, values in what_it_took(rows, read_bill(folder, rows), settings).items():
        rows[name] = values
    return rows[list(SCORE_COLUMNS)]


def read_calls(folder: Path | str) -> pd.DataFrame:
    """The call frame, one row for each request to a judge or answer taken from the store, in the order they ended.

    Columns as `CallRow`. Token counts are `Int64`, NA where unknown; `cost_usd` and `saved_usd` NaN where unknown; `at`
    in UTC.
    """
    return _calls(read_parts(folder, "calls"))


def calls_frame(rows: Sequence[CallRow]) -> pd.DataFrame:
    """The call frame of rows that are in no folder, as `read_calls` gives it.

    >>> calls_frame([]).columns[:3].tolist()
    ['ask', 'judge', 'kind']
    """
    names = SCHEMAS["calls"].names
    return _calls(to_table("calls", [tuple(getattr(row, name) for name in names) for row in rows]))


def _calls(table: pa.Table) -> pd.DataFrame:
    return _frame(table, plain_whole=("repeat", "attempt"), lists=("refused_parameters",))


def read_records(folder: Path | str) -> pd.DataFrame:
    """The records that were evaluated, in their order; columns as `Record`, `contexts` lists, `metadata` JSON text."""
    return _frame(read_parts(folder, "records"), lists=("contexts",))


def read_light_scores(folder: Path | str, settings: Mapping[str, Any]) -> pd.DataFrame:
    """The rows of the score frame without their texts, for what is computed over many: key, group, score, status, flags
    (only whether `no_claims` is among them), disagreement, panel."""
    columns = [*ROW_KEY, "group", "score", "status", "flags", "disagreement", "panel"]
    table = read_parts(folder, "scores", columns)
    rows = _frame(table.drop_columns(["flags"]), plain_whole=("repeat",))
    rows["no_claims"] = ["no_claims" in flags for flags in table.column("flags").to_pylist()]
    rows = in_order(rows, folder, settings)
    rows["passed"] = passed(rows, settings)
    return rows


def read_bill(folder: Path | str, rows: pd.DataFrame) -> Bill:
    """Which of `rows` used which calls, and what those took."""
    of_calls = ["ask", "from_store", "latency_s", "cost_usd", "prompt_tokens", "completion_tokens"]
    return bill(rows, _frame(read_parts(folder, "calls", of_calls)), _frame(read_parts(folder, "uses"), ("repeat",)))


def what_it_took(rows: pd.DataFrame, taken: Bill, settings: Mapping[str, Any]) -> dict[str, npt.NDArray[Any]]:
    """What the judging of each row took, by column name."""
    elsewhere = of_recorded_judges(rows, settings)

    def share(name: str) -> npt.NDArray[np.float64]:
        return np.where(elsewhere, np.nan, taken.share(name).strict)

    return {
        "judge_calls": taken.total("sent").astype(np.int64),
        "judge_prompt_tokens": share("prompt_tokens"),
        "judge_completion_tokens": share("completion_tokens"),
        "judge_cost_usd": share("cost_usd"),
        "judge_latency_s": taken.total("latency_s"),
        "cached_calls": taken.total("cached").astype(np.int64),
    }


def of_recorded_judges(rows: pd.DataFrame, settings: Mapping[str, Any]) -> npt.NDArray[np.bool_]:
    """Which rows come from judges that were asked elsewhere, or from metrics that ask by themselves."""
    names = [name for name, judge in settings.get("judges", {}).items() if judge.get("kind") == RECORDED]
    metrics = [name for name, metric in settings.get("metrics", {}).items() if metric.get("asks_elsewhere")]
    return (rows["judge"].isin(names) | rows["metric"].isin(metrics)).to_numpy(dtype=bool)


def headline_judge(judges: Sequence[str], settings: Mapping[str, Any]) -> str | None:
    """Whose scores stand for a metric that `judges` scored: the panel's, or those of the only judge; else None.

    >>> headline_judge(["ada", "panel"], {"panel": {"name": "panel"}}), headline_judge(["ada", "bob"], {"panel": None})
    ('panel', None)
    """
    panel: str | None = (settings.get("panel") or {}).get("name")
    if panel in judges:
        return panel
    return judges[0] if len(set(judges)) == 1 else None


def passed(rows: pd.DataFrame, settings: Mapping[str, Any]) -> pd.Series[Any]:
    """Whether each score reaches its metric's threshold; equality passes; NA without a score or a threshold."""
    declared = settings["metrics"]
    threshold = _of_metric(rows, {name: one.get("threshold") for name, one in declared.items()})
    higher = _of_metric(rows, {name: float(one.get("higher_is_better", True)) for name, one in declared.items()})
    score = rows["score"].to_numpy(dtype=np.float64)
    reached = np.where(higher == 1.0, score >= threshold, score <= threshold)
    there = (rows["status"] == "ok").to_numpy(dtype=bool) & ~np.isnan(threshold)
    return pd.Series(pd.arrays.BooleanArray(reached, ~there), index=rows.index, name="passed")


def in_order(rows: pd.DataFrame, folder: Path | str, settings: Mapping[str, Any]) -> pd.DataFrame:
    """`rows` in the order of the records, then of the metrics, the judges by name (panel last) and the repeats."""
    records = _frame(read_parts(folder, "records", ["id", "variant"])).drop_duplicates()
    place = pd.MultiIndex.from_frame(records).get_indexer(pd.MultiIndex.from_frame(rows[["id", "variant"]]))
    metrics = {name: at for at, name in enumerate(settings["metrics"])}
    judge = pd.factorize(rows["judge"], sort=True)[0]
    metric = rows["metric"].map(metrics).fillna(len(metrics)).to_numpy()
    order = np.lexsort((rows["repeat"], judge, rows["panel"], metric, place))
    return rows.iloc[order].reset_index(drop=True)


def records_with_answers(folder: Path | str) -> pd.DataFrame:
    """Id and variant of every record whose answer is there (a blank answer is), without reading all answers at once."""
    table = read_parts(folder, "records", ["id", "variant"], where=pc.field("answer").is_valid())
    return _frame(table)


def records_without_answers(folder: Path | str) -> pd.DataFrame:
    """Id, variant and `answer_error` (None where nothing says why) of every record that has no answer."""
    table = read_parts(folder, "records", ["id", "variant", "answer_error"], where=pc.field("answer").is_null())
    return _frame(table)


def _of_metric(rows: pd.DataFrame, values: Mapping[str, float | None]) -> npt.NDArray[np.float64]:
    """A number of each row's metric, NaN where it has none."""
    codes, names = pd.factorize(rows["metric"])
    numbers = [values.get(name) for name in names]
    known = np.array([np.nan if number is None else number for number in numbers], dtype=np.float64)
    return known[codes] if len(known) else np.empty(0)


def _frame(table: pa.Table, plain_whole: Sequence[str] = (), lists: Sequence[str] = ()) -> pd.DataFrame:
    frame = table.drop_columns(list(lists)).to_pandas(types_mapper={pa.int64(): pd.Int64Dtype()}.get)
    for name in plain_whole:
        frame[name] = frame[name].astype("int64")
    for name in lists:
        frame[name] = pd.Series(table.column(name).to_pylist(), index=frame.index, dtype=object)
    ordered: pd.DataFrame = frame[table.column_names]
    return ordered
