"""Some rows of a folder of results with all that their judging took: the calls they used, and who used those too."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc

from jurimetrics.display import count
from jurimetrics.errors import InputError
from jurimetrics.frames import SCHEMAS
from jurimetrics.results.reading import read_parts


def rows_of(
    variants: Sequence[str], ids: Sequence[str] | None = None, metrics: Sequence[str] | None = None
) -> pc.Expression:
    """The rows of these variants, of these records only and under these metrics only where they are given.

    >>> table = pa.table({"id": ["1", "2"], "variant": ["a", "b"]})
    >>> table.filter(rows_of(["b"])).column("id").to_pylist()
    ['2']
    """
    found = pc.field("variant").isin(list(variants))
    if ids is not None:
        found = found & pc.field("id").isin(pa.array(list(ids), pa.string()))
    return found if metrics is None else found & pc.field("metric").isin(list(metrics))


def calls_and_uses(folder: Path | str, rows: pc.Expression) -> tuple[pa.Table, pa.Table]:
    """The calls that `rows` used, and all uses of those, also by rows that are not among them.

    A call is split over all that used it, so the shares of `rows` stay what they were. Calls that no row came to use
    belong to the whole evaluation and come along. Raises `InputError` for a part that cannot be read.

    >>> import tempfile
    >>> from jurimetrics.frames import RowWriter, UseRow
    >>> writer = RowWriter(tempfile.mkdtemp())
    >>> for variant, ask in (("a", "shared"), ("b", "shared"), ("b", "own")):
    ...     writer.use(UseRow(ask, "1", variant, "m", "ann", 0))
    >>> writer.close({"metrics": {}})
    >>> calls_and_uses(writer.folder, rows_of(["a"]))[1].column("variant").to_pylist()
    ['a', 'b']
    """
    wanted = read_parts(folder, "uses", ["ask"], where=rows).column("ask").unique()
    uses, calls = read_parts(folder, "uses"), read_parts(folder, "calls")
    mine = pc.is_in(calls.column("ask"), wanted)
    nobody = pc.invert(pc.is_in(calls.column("ask"), uses.column("ask").unique()))
    return calls.filter(pc.or_(mine, nobody)), uses.filter(pc.is_in(uses.column("ask"), wanted))


def row_parts(folder: Path | str, table: str, rows: pc.Expression | None = None) -> Iterator[pa.Table]:
    """The `rows` (None: all) of one table ("records", "scores"), part by part as they were written, so that memory stays
    flat. Raises `InputError` for a part that cannot be read.

    >>> list(row_parts("nowhere", "scores", rows_of([""])))
    []
    """
    import pyarrow.parquet as pq

    schema = SCHEMAS[table]
    for path in sorted((Path(folder) / table).glob("part-*.parquet")):
        try:
            part = pq.read_table(path, partitioning=None, filters=rows).select(schema.names).cast(schema)
        except (pa.ArrowException, KeyError, OSError) as fault:
            raise InputError(f"{path}: cannot be read ({str(fault).splitlines()[0]})") from None
        yield part


def reference_models(records: Iterable[pa.Table]) -> dict[str, int]:
    """Model -> how many of the references it wrote, by the mark that `write_references` leaves in the metadata.

    >>> metadata = ['{"reference_model": "m"}', '{"topic": "law"}', '{"reference_model": "m"}']
    >>> reference_models([pa.table({"reference": ["In 1780.", "In 1781.", None], "metadata": metadata})])
    {'m': 1}
    """
    found = Counter[str]()
    for table in records:
        for text in table.filter(pc.is_valid(table.column("reference"))).column("metadata").to_pylist():
            if text and "reference_model" in text and (model := json.loads(text).get("reference_model")):
                found[str(model)] += 1
    return dict(sorted(found.items()))


def questions_of_models(folder: Path | str) -> dict[str, int]:
    """Model -> to how many questions (ids) it wrote the reference: answers of several variants may share one.

    >>> questions_of_models("nowhere")
    {}
    """
    found: dict[str, set[str]] = {}
    written = pc.field("reference").is_valid() & pc.match_substring(pc.field("metadata"), "reference_model")
    table = read_parts(folder, "records", ["id", "metadata"], where=written)
    for identity, text in zip(*(table.column(name).to_pylist() for name in ("id", "metadata")), strict=True):
        if model := json.loads(text).get("reference_model"):
            found.setdefault(str(model), set()).add(identity)
    return {model: len(ids) for model, ids in found.items()}


def references_told(models: Mapping[str, int], questions: Mapping[str, int]) -> dict[str, str]:
    """Model -> of how much it wrote the reference, in words; `models` counts answers, `questions` ids where known.

    >>> references_told({"m": 4, "n": 2, "o": 1}, {"m": 2, "n": 2})
    {'m': '2 questions (4 answers)', 'n': '2 questions', 'o': '1 answer'}
    """
    return {model: _told(int(answers), questions.get(model, 0)) for model, answers in models.items()}


def _told(answers: int, questions: int) -> str:
    if not questions:
        return count(answers, "answer")
    return count(questions, "question") + ("" if questions == answers else f" ({count(answers, 'answer')})")
