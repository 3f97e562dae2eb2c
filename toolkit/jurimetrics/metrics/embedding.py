"""How near answer and reference are in meaning, by the vectors of an embedder.

Vectors do not see negation: a contradiction shares nearly all its words with what it contradicts, and scores higher
than most paraphrases do. These metrics say that two texts are about the same, never that one is right.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from jurimetrics.metrics.metric import Ask, Score, metric
from jurimetrics.records import Record
from jurimetrics.tasks.embed import EmbedTexts
from jurimetrics.text import is_blank, sentences

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

Aggregate = Literal["f", "recall", "precision"]
BLANK = "the answer is blank"

_DIGITS = 9
# Vectors are kept as float32, so nothing is lost, and a text compared with itself is 1 and not a little more.


@metric(needs=("answer", "reference"), range=(-1, 1), judged=False, asks=(EmbedTexts,))
async def similarity_score(record: Record, ask: Ask) -> Score:
    """Cosine of answer and reference: the dot product of their unit vectors (source: GitLab's evaluation framework).

    -1 to 1, 1 for the same direction. No default threshold: a good one belongs to an embedder. Undefined for a blank
    answer. Each text is one vector as a whole, so an answer that holds the reference and more scores low (the partial
    matching problem, which `cross_similarity` with `aggregate="recall"` does not have), and a contradiction scores
    high. Asks one embedding request.
    """
    answer, reference = record.answer or "", record.reference or ""
    if is_blank(answer):
        return Score.undefined(BLANK)
    vectors = await ask(EmbedTexts((answer, reference)))
    value = round(float(vectors[0] @ vectors[1]), _DIGITS)
    return Score(value, f"cosine {value:.3f} of the answer and the reference, each as one vector")


@metric(needs=("answer", "reference"), range=(0, 1), judged=False, asks=(EmbedTexts,))
async def cross_similarity(record: Record, ask: Ask, *, aggregate: Aggregate = "f") -> Score:
    """How well the sentences of answer and reference find each other (source: GitLab's cross similarity score).

    A matrix of cosines, clipped at 0: a row for each sentence of the answer, a column for each of the reference. The
    mean of the row maxima is the precision side (what the answer says is in the reference), the mean of the column
    maxima the recall side (what the reference says is in the answer). `aggregate` is "f" (their harmonic mean, 0 if
    both are 0), "recall" or "precision". A reference that stands whole in a longer answer has a recall side of 1:
    that is what solves partial matching, while "f" still charges for the length. 0 to 1; no default threshold.
    Undefined for a blank answer. The details hold both sides, the sentences and the matrix (4 decimals);
    `plots.similarity_matrix` draws it. The source leaves the way to aggregate open; this one is that of BERTScore
    (arXiv 1904.09675), with sentences for tokens. Asks one embedding request for up to 32 sentences.
    """
    if is_blank(record.answer or ""):
        return Score.undefined(BLANK)
    said = [sentence.text for sentence in sentences(record.answer or "")]
    expected = [sentence.text for sentence in sentences(record.reference or "")]
    if not said or not expected:
        return Score.undefined(f"the {'reference' if said else 'answer'} has no sentences")
    vectors = await ask(EmbedTexts((*said, *expected)))
    matrix = (vectors[: len(said)] @ vectors[len(said) :].T).clip(0.0).round(_DIGITS)
    sides = _sides(matrix)
    reason = (
        f"precision side {sides['precision']:.3f} over {len(said)} of the answer's sentences, recall side "
        f"{sides['recall']:.3f} over {len(expected)} of the reference's"
    )
    details: dict[str, Any] = {
        **sides,
        "answer_sentences": said,
        "reference_sentences": expected,
        "matrix": matrix.round(4).tolist(),
    }
    return Score(sides[aggregate], reason, details)


def _sides(matrix: npt.NDArray[np.float64]) -> dict[str, float]:
    precision, recall = float(matrix.max(axis=1).mean()), float(matrix.max(axis=0).mean())
    both = precision + recall
    f = 2 * precision * recall / both if both else 0.0
    return {side: round(value, _DIGITS) for side, value in (("precision", precision), ("recall", recall), ("f", f))}
