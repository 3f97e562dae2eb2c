"""What can be counted without a judge."""

from __future__ import annotations

from collections import Counter

from jurimetrics.metrics.metric import Ask, Score, metric
from jurimetrics.records import Record
from jurimetrics.text import f1_tokens, language_of


@metric(needs=("answer", "reference"), range=(0, 1), threshold=0.5, judged=False)
async def f1(record: Record, ask: Ask) -> Score:
    """Token F1 of answer and reference: harmonic mean of precision and recall over the multiset of words.

    Normalisation as in Azure's F1 and SQuAD (lower case, no punctuation, no English articles), for every script: NFKC,
    Unicode punctuation, single characters for Chinese, Japanese and Thai, articles dropped in English only. 0 where one
    side has no words, 1 where neither has any. The default threshold is .5: the 3 in Azure's example belongs to its
    Likert scales.
    """
    texts = (record.answer or "", record.reference or "")
    # One language for both: a short text shows its own badly, and articles must be dropped on both sides or on none.
    language = language_of(" ".join(texts))
    answer, reference = (Counter(f1_tokens(text, language)) for text in texts)
    common = (answer & reference).total()
    sizes = answer.total() + reference.total()
    value = 2 * common / sizes if sizes else 1.0
    said = f"{common} of {answer.total()} words of the answer and {reference.total()} of the reference in common"
    return Score(value, said, {"common": common, "answer": answer.total(), "reference": reference.total()})


@metric(needs=("answer", "reference"), range=(0, 1), threshold=1.0, judged=False)
async def exact_match(record: Record, ask: Ask) -> Score:
    """1 where answer and reference are the same words in the same order after the normalisation of `f1`, else 0."""
    texts = (record.answer or "", record.reference or "")
    language = language_of(" ".join(texts))
    answer, reference = (f1_tokens(text, language) for text in texts)
    same = answer == reference
    return Score(float(same), "the same words" if same else "not the same words")
