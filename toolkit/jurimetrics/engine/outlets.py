"""Where the rows of an evaluation go: into the folder of results and to whoever is looking."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from jurimetrics.engine.progress import Progress
from jurimetrics.frames import CallRow, RowWriter, ScoreRow, UseRow
from jurimetrics.records import Record


@dataclass(frozen=True)
class Outlets:
    """Writes rows and counts them. Raises `OSError` that says where the answers are, where results cannot be written."""

    writer: RowWriter
    bar: Progress
    store: Path | None

    def call(self, row: CallRow) -> None:
        """A request, or an answer from the store. It never comes between an answer and the store: what cannot be written
        waits in the writer, and the next record or score row tells."""
        with suppress(OSError):
            self.writer.call(row)
        self.bar.call(row)

    def use(self, row: UseRow) -> None:
        """A row used a call."""
        with suppress(OSError):
            self.writer.use(row)

    def record(self, record: Record) -> None:
        """A record that is worked on."""
        try:
            self.writer.record(record)
        except OSError as error:
            raise self.unwritable(error) from None

    def score(self, row: ScoreRow) -> None:
        """A row that is done."""
        try:
            self.writer.score(row)
        except OSError as error:
            raise self.unwritable(error) from None
        self.bar.row(failed=row.status == "failed")

    def unwritable(self, error: OSError) -> OSError:
        """The error to raise where results cannot be written."""
        kept = "no store was given, so what was answered is lost"
        if self.store is not None:
            kept = f"what was answered is in the store {self.store}: the same call goes on from there"
        return OSError(f"the results cannot be written to {self.writer.folder}; {kept} ({error})")
