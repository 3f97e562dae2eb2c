"""Turn texts into vectors: what an embedder answers, and how the answer is kept."""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from jurimetrics.errors import ReplyError
from jurimetrics.tasks import items
from jurimetrics.tasks.task import DoesNotFit, Message, Rule, Split, Vote
from jurimetrics.text import estimate_tokens

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

TEXTS_PER_CALL = 32
"""Texts in one request, at most: the smallest limit that is common (the default of text-embeddings-inference; hosted
endpoints take about a hundred and more)."""
BYTES_PER_CALL = 100_000
"""UTF-8 bytes of text in one request, about 25,000 tokens; one text that is longer goes alone."""

_SURROGATE = re.compile("[\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class EmbedTexts:
    """Ask an embedder for a vector of each text.

    The answer is an array of float64, one row per text in order, each row of length 1, read-only: the dot product of
    two rows is their cosine, -1 to 1. It goes to the `embedder` of the evaluation, never to a judge, and nobody votes.

    >>> task = EmbedTexts(("north", "north-east"))
    >>> vectors = task.read(packed([[0.0, 2.0], [1.0, 1.0]]))
    >>> round(float(vectors[0] @ vectors[1]), 4)
    0.7071
    """

    texts: tuple[str, ...]

    kind: ClassVar[str] = "embed"
    version: ClassVar[str] = "1"
    shared: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "texts", tuple(self.texts))

    @property
    def data(self) -> Mapping[str, Any]:
        """The texts, JSON-able."""
        return {"texts": list(self.texts)}

    @property
    def sent(self) -> list[str]:
        """The texts as they can be sent: half of a surrogate pair becomes the replacement character.

        >>> EmbedTexts(("ab",)).sent
        ['ab']
        """
        return [_SURROGATE.sub("\ufffd", text) for text in self.texts]

    def messages(self, reason_language: str | None = None) -> list[Message]:
        """None: nothing is asked in words."""
        return []

    @property
    def schema(self) -> dict[str, Any]:
        """None: the reply is an embeddings list, not an object of ours."""
        return {}

    def read(self, reply: Any) -> npt.NDArray[np.float64]:
        """The vectors in `packed` data, each scaled to length 1.

        Raises `ReplyError`: `incomplete` where their number is another than that of the texts, `out_of_range` for NaN,
        infinity and vectors of zeros, which have no direction; `unparsed` for what is no packed data.
        """
        import numpy as np

        given = items.one_object(reply)
        dimension = items.whole(given.get("dimension"), 1, 1_000_000, "dimension")
        try:
            raw = base64.b64decode(items.text(given.get("vectors"), "vectors"), validate=True)
            vectors = np.frombuffer(raw, dtype="<f4").astype(np.float64).reshape(-1, dimension)
        except (binascii.Error, ValueError):
            raise ReplyError("unparsed", f"vectors: no base64 of float32 in rows of {dimension}") from None
        if len(vectors) != len(self.texts):
            raise ReplyError("incomplete", f"{len(vectors)} vectors for {len(self.texts)} texts")
        lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
        for number, length in enumerate(lengths[:, 0], 1):
            if not np.isfinite(length) or length == 0.0:
                fault = "is all zeros" if length == 0.0 else "holds what is no finite float32"
                raise ReplyError("out_of_range", f"vector {number} of {len(vectors)} {fault}")
        vectors /= lengths
        vectors.setflags(write=False)
        return vectors

    def doubts(self, answer: npt.NDArray[np.float64]) -> tuple[int, ...]:
        """Nothing: readable vectors are taken as they are."""
        return ()

    def merge(self, previous: Mapping[str, Any], reply: Any) -> Any:
        """The new reply: vectors are asked for whole."""
        return reply

    def vote(self, answers: Mapping[str, npt.NDArray[np.float64] | None], rule: Rule) -> Vote[npt.NDArray[np.float64]]:
        """Never: two embedders' spaces have nothing to do with each other. Raises `TypeError`."""
        raise TypeError("vectors cannot be voted on")

    def split(self, max_tokens: int | None = None) -> Split:
        """Parts of at most `TEXTS_PER_CALL` texts and about `BYTES_PER_CALL` bytes; none where there is no text.

        `max_tokens` is what one text may have, by `estimate_tokens`. Raises `DoesNotFit` for a longer one: part of a
        text has another meaning than the whole.
        """
        for text in self.texts if max_tokens is not None else ():
            taken = estimate_tokens(text)
            if max_tokens is not None and taken > max_tokens:
                raise DoesNotFit(f"embed: one text has about {taken} tokens, {max_tokens} are allowed")
        return Split(tuple(EmbedTexts(tuple(part)) for part in _portions(self.texts)), _stacked)


def packed(vectors: Sequence[Any]) -> dict[str, Any]:
    """Vectors as the JSON that is stored: base64 of little-endian float32, row by row, and how long a row is.

    Raises `ReplyError` (`unparsed`) where rows differ in length, are empty or hold something else than numbers. What
    float32 cannot hold becomes infinity, which `EmbedTexts.read` refuses.

    >>> packed([[0.0, 2.0]])
    {'dimension': 2, 'vectors': 'AAAAAAAAAEA='}
    """
    import numpy as np

    try:
        given = np.asarray(vectors)
    except ValueError:
        raise ReplyError("unparsed", "the vectors are not all equally long") from None
    if given.ndim != 2 or given.size == 0 or given.dtype.kind not in "iuf":
        raise ReplyError("unparsed", "the vectors are not rows of numbers")
    with np.errstate(over="ignore"):
        rows = given.astype("<f4")
    return {"dimension": rows.shape[1], "vectors": base64.b64encode(rows.tobytes()).decode("ascii")}


def _portions(texts: Iterable[str]) -> list[list[str]]:
    portions: list[list[str]] = []
    filled = 0
    for text in texts:
        size = len(text.encode("utf-8", "surrogatepass"))
        if not portions or len(portions[-1]) == TEXTS_PER_CALL or filled + size > BYTES_PER_CALL:
            portions.append([])
            filled = 0
        portions[-1].append(text)
        filled += size
    return portions


def _stacked(answers: Sequence[npt.NDArray[np.float64]]) -> npt.NDArray[np.float64]:
    import numpy as np

    if len(answers) == 1:
        return answers[0]
    joined = np.concatenate(answers) if answers else np.empty((0, 0))
    joined.setflags(write=False)
    return joined
