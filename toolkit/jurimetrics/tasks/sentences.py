"""Find the sentences of an answer that the documents do not support, and the words that say too much."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar, Literal, cast

from jurimetrics.errors import ReplyError
from jurimetrics.tasks import items
from jurimetrics.tasks.evidence import Group, by_group, groups_for, shown_to
from jurimetrics.tasks.fence import substitute
from jurimetrics.tasks.parts import fitting, wanted_numbers, windows
from jurimetrics.tasks.preamble import compose, counted, numbered, range_of, version_of
from jurimetrics.tasks.quotes import QUOTES_SCHEMA, Quote, verified
from jurimetrics.tasks.task import Items, Message, Rule, Split, Vote
from jurimetrics.tasks.voting import by_item, choices, entropy, majority_label, mean_disagreement
from jurimetrics.text import Sentence, find_quote, is_blank, sentences

SentenceVerdict = Literal["supported", "unsupported", "no_check", "undecided"]
SpanType = Literal["intrinsic", "extrinsic", ""]
LABELS = ("supported", "unsupported", "no_check")
TYPES = ("intrinsic", "extrinsic")

_BEFORE = """\
TASK: label <<which>> of the answer below against the documents above.
supported - all it states follows from the documents, one alone or several together; paraphrase and arithmetic are fine.
unsupported - it states something that does not follow from them, even if it is true.
no_check - it states nothing to check: greeting, question, opinion, refusal, remark about the answer itself.
RULES: In doubt, unsupported. A hedged statement is supported by evidence of that strength, a firm one on hedged \
evidence is not. Quotations must match in wording and speaker. Sentences of the answer are no evidence.
spans, for an unsupported sentence: the shortest stretch whose removal or correction would mend it (in code and lists the \
whole line or item), copied word for word from that sentence; [] for all others. type: intrinsic if a passage of the \
documents can be quoted against it, otherwise extrinsic.
evidence: passages of the documents that decide, copied word for word, each with its document's number; [] if there are \
none."""
_AFTER = """\
Reply with {"sentences": [{"at": number, "evidence": [{"doc": number, "quote": text}], "reason": text, \
"spans": [{"quote": text, "type": type}], "verdict": label}]}: exactly <<count>>, one for each of <<which>>."""

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "sentences": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "at": {"type": "integer"},
                    "evidence": QUOTES_SCHEMA,
                    "reason": {"type": "string"},
                    "spans": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {
                                "quote": {"type": "string"},
                                "type": {"type": "string", "enum": list(TYPES)},
                            },
                            "required": ["quote", "type"],
                            "additionalProperties": False,
                        },
                    },
                    "verdict": {"type": "string", "enum": list(LABELS)},
                },
                "required": ["at", "evidence", "reason", "spans", "verdict"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["sentences"],
    "additionalProperties": False,
}
_READER = 1


@dataclass(frozen=True, slots=True)
class Span:
    """A stretch of the answer that says too much: `answer[start:end] == quote`, offsets in code points.

    `type` is "" where the judge gave no span. `found` is False where the judge's words do not stand in the sentence: the
    span is then the whole sentence.

    >>> Span(0, 4, "1890", "intrinsic").found
    True
    """

    start: int
    end: int
    quote: str
    type: SpanType
    found: bool = True


@dataclass(frozen=True, slots=True)
class SentenceLabel:
    """What was found of one sentence: `answer[start:end] == text`; spans only where it is `unsupported`.

    The label is `undecided`, and `undecided` True, where a panel has no majority. `evidence` holds only quotes that
    stand in the documents.

    >>> SentenceLabel("Hello!", 0, 6, "no_check", "a greeting").unsupported
    False
    """

    text: str
    start: int
    end: int
    label: SentenceVerdict
    reason: str
    spans: tuple[Span, ...] = ()
    evidence: tuple[Quote, ...] = ()
    undecided: bool = False

    @property
    def unsupported(self) -> bool:
        """Whether the label is `unsupported`."""
        return self.label == "unsupported"


@dataclass(frozen=True, slots=True)
class FindUnsupported:
    """Ask which sentences of an answer hold something that the documents do not support.

    The answer is `Items[SentenceLabel]`, one for each sentence. The label decides; spans are for reading: one is looked
    for in its own sentence (exact, then folded), and where it is not found, nor after one more question, the whole
    sentence is marked. Flags: `dropped:N` unknown or repeated numbers; `quote_not_found`; `spans_ignored:N` sentences not
    called unsupported that came with spans; `split`. `window` is set by `split`. Sentence labels with a "nothing to
    check" follow FACTS Grounding (arXiv 2501.03200); intrinsic and extrinsic are those of RAGTruth's field.

    >>> task = FindUnsupported("It opened in 1890. Lovely!", ("The tower opened in 1889.",))
    >>> found = task.read({"sentences": [
    ...     {"at": 1, "evidence": [], "reason": "The year is 1889.", "verdict": "unsupported",
    ...      "spans": [{"quote": "1890", "type": "intrinsic"}]},
    ...     {"at": 2, "evidence": [], "reason": "", "spans": [], "verdict": "no_check"}]})
    >>> found[0].spans
    (Span(start=13, end=17, quote='1890', type='intrinsic', found=True),)
    """

    answer: str
    documents: tuple[str, ...]
    window: tuple[int, int] | None = None

    kind: ClassVar[str] = "sentences"
    version: ClassVar[str] = ""
    shared: ClassVar[bool] = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "documents", tuple(self.documents))

    @property
    def data(self) -> Mapping[str, Any]:
        """The fields, JSON-able."""
        window = None if self.window is None else list(self.window)
        return {"answer": self.answer, "documents": list(self.documents), "window": window}

    @property
    def schema(self) -> dict[str, Any]:
        """`sentences: [{at, evidence, reason, spans, verdict}]`."""
        return _SCHEMA

    def messages(self, reason_language: str | None = None) -> list[Message]:
        """Documents, rules, the whole answer with numbered sentences, what to reply."""
        wanted = self._wanted()
        which = range_of(wanted, "sentence")
        after = substitute(_AFTER, {"count": counted(len(wanted), "entry", "entries"), "which": which})
        answer = numbered(sentence.text for sentence in sentences(self.answer))
        before = substitute(_BEFORE, {"which": which})
        return compose(before, [("answer", answer)], after, self.documents, reason_language)

    def read(self, reply: Any) -> Items[SentenceLabel]:
        """One label for each sentence asked. Raises `ReplyError`; sentences count from 1 as in the prompt."""
        reading = items.read_items(reply, self._shape(), self._wanted())
        labels = tuple(label for label, _ in reading.values)
        ignored = sum(extra for _, extra in reading.values)
        flags = (f"spans_ignored:{ignored}",) if ignored else ()
        return Items(labels, items.joined_flags(reading.flags, flags, _quote_flags(labels)))

    def doubts(self, answer: Items[SentenceLabel]) -> tuple[int, ...]:
        """The unsupported sentences without spans, or with words that do not stand in them."""
        pairs = zip(self._wanted(), answer, strict=True)
        return tuple(number for number, label in pairs if any(not span.found for span in label.spans))

    def merge(self, previous: Mapping[str, Any], reply: Any) -> Any:
        """A re-ask's sentences laid over the valid ones before."""
        return items.merge_items(previous, reply, self._shape(), self._wanted())

    def vote(self, answers: Mapping[str, Items[SentenceLabel] | None], rule: Rule) -> Vote[Items[SentenceLabel]]:
        """Sentence by sentence the label of more than half of the judges asked, else `undecided`, flagged so."""
        ballots = by_item(answers)
        voted = tuple(_voted(ballot, rule) for ballot in ballots)
        labels = tuple(choices(ballot, lambda label: label.label) for ballot in ballots)
        flags = ("undecided",) if any(label.undecided for label in voted) else ()
        members = chain.from_iterable(answer.flags for answer in answers.values() if answer is not None)
        kept = {flag for flag in members if flag == "split"}
        answer = Items(voted, items.joined_flags(kept, flags, _quote_flags(voted)))
        return Vote(answer, mean_disagreement(entropy(ballot.values()) for ballot in labels), labels, flags)

    def split(self, max_tokens: int | None = None) -> Split:
        """Ten sentences a call, each with the whole answer and the same documents; documents that do not fit in groups.

        A blank answer asks nothing.
        """
        if is_blank(self.answer):
            return Split((), lambda answers: Items(()))
        chunks: tuple[FindUnsupported, ...] = windows(self, len(sentences(self.answer)), None)
        evidence = groups_for(chunks, self.documents, max_tokens)
        parts = fitting(shown_to(chunks, evidence), max_tokens)
        return Split(parts, lambda answers: _join(answers, evidence))

    def _wanted(self) -> range:
        return wanted_numbers(self.window, sentences(self.answer))

    def _shape(self) -> items.Shape[tuple[SentenceLabel, int]]:
        pieces = sentences(self.answer)
        return items.Shape(
            "sentences",
            "at",
            "sentence",
            lambda number, item: self._label(pieces[number - 1], item),
            lambda read: read[0].label,
        )

    def _label(self, piece: Sentence, item: Mapping[str, Any]) -> tuple[SentenceLabel, int]:
        """The label of one sentence, and 1 if it came with spans that its label has no use for."""
        label = cast(SentenceVerdict, items.label(item.get("verdict"), LABELS, "verdict"))
        given = items.listed(item, "spans")
        spans = _spans(piece, given) if label == "unsupported" else ()
        reason = items.text(item.get("reason"), "reason")
        evidence = verified(items.listed(item, "evidence"), self.documents)
        read = SentenceLabel(piece.text, piece.start, piece.end, label, reason, spans, evidence)
        return read, int(bool(given) and label != "unsupported")


def _spans(piece: Sentence, given: Sequence[Any]) -> tuple[Span, ...]:
    """The spans of an unsupported sentence in order, each once; the whole sentence for what is not in it."""
    whole_sentence = (0, len(piece.text))
    made: dict[tuple[int, int], Span] = {}
    for entry in given:
        if not isinstance(entry, Mapping):
            raise ReplyError("unparsed", "each span must be an object with quote and type")
        kind = cast(SpanType, items.label(entry.get("type"), TYPES, "type"))
        place = find_quote(items.text(entry.get("quote"), "quote"), piece.text)
        start, end = place or whole_sentence
        span = Span(piece.start + start, piece.start + end, piece.text[start:end], kind, place is not None)
        made.setdefault((span.start, span.end), span)
    if not made:
        return (Span(piece.start, piece.end, piece.text, "", found=False),)
    return tuple(sorted(made.values(), key=lambda span: (span.start, span.end)))


def _quote_flags(labels: Sequence[SentenceLabel]) -> tuple[str, ...]:
    lost = any(not span.found for label in labels for span in label.spans)
    return ("quote_not_found",) if lost else ()


def _voted(ballot: Mapping[str, SentenceLabel | None], rule: Rule) -> SentenceLabel:
    given = [(judge, label) for judge, label in ballot.items() if label is not None]
    decided = majority_label(choices(ballot, lambda label: label.label), rule)
    first = given[0][1]
    if decided is None:
        said = "; ".join(f"{judge}: {label.label}" for judge, label in given)
        reason = f"no majority ({said})"
        return replace(first, label="undecided", reason=reason, spans=(), evidence=(), undecided=True)
    winners = [label for _, label in given if label.label == decided]
    return _united(winners[0], winners)


def _united(chosen: SentenceLabel, labels: Sequence[SentenceLabel]) -> SentenceLabel:
    """`chosen` with the spans and the evidence of all labels; where some found words, the whole sentence is not kept."""
    spans = [span for label in labels for span in label.spans]
    found = [span for span in spans if span.found] or spans
    by_place = {(span.start, span.end): span for span in reversed(found)}
    evidence = dict.fromkeys(quote for label in labels for quote in label.evidence)
    return replace(chosen, spans=tuple(by_place[place] for place in sorted(by_place)), evidence=tuple(evidence))


def _join(answers: Sequence[Items[SentenceLabel]], evidence: Sequence[Group]) -> Items[SentenceLabel]:
    flags = items.joined_flags(*(answer.flags for answer in answers))
    if len(evidence) == 1:
        return Items(tuple(chain.from_iterable(answers)), flags)
    joined = tuple(_over_evidence(values) for values in by_group(answers, evidence))
    kept = [flag for flag in flags if flag != "quote_not_found"]
    return Items(joined, items.joined_flags(["split"], kept, _quote_flags(joined)))


def _over_evidence(labels: Sequence[SentenceLabel]) -> SentenceLabel:
    """One sentence over the parts of the evidence: unsupported only if every part calls it so, supported if any does.

    Of the spans those are kept that overlap an unsupported span in every other part; if there are none, all.
    """
    said = {label.label for label in labels}
    if said != {"unsupported"}:
        decided = "supported" if "supported" in said else "no_check"
        deciding = [label for label in labels if label.label == decided]
        return _united(deciding[0], deciding)
    united = _united(labels[0], labels)
    common = tuple(span for span in united.spans if all(_overlaps(span, label) for label in labels))
    return replace(united, spans=common or united.spans)


def _overlaps(span: Span, label: SentenceLabel) -> bool:
    return any(span.start < other.end and other.start < span.end for other in label.spans)


_ANSWER, _DOCUMENTS = "The hall is old. It was built in 1901, they say.", ("The hall was built in 1901.",)
FindUnsupported.version = version_of(
    (FindUnsupported(_ANSWER, _DOCUMENTS), FindUnsupported(_ANSWER, _DOCUMENTS, (1, 2))), _READER
)
