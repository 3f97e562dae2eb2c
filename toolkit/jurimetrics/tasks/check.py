"""Check claims against documents: supported, contradicted or unknown, each with evidence and a reason."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar, Literal, cast

from jurimetrics.tasks import items
from jurimetrics.tasks.claims import Claim
from jurimetrics.tasks.evidence import Group, by_group, groups_for, shown_to
from jurimetrics.tasks.fence import substitute
from jurimetrics.tasks.parts import fitting
from jurimetrics.tasks.preamble import compose, counted, numbered, range_of, version_of
from jurimetrics.tasks.quotes import QUOTES_SCHEMA, Quote, verified
from jurimetrics.tasks.task import ITEMS_PER_CALL, Items, Message, Rule, Split, Vote
from jurimetrics.tasks.voting import by_item, choices, entropy, majority_label, mean_disagreement
from jurimetrics.text import is_blank

CheckLabel = Literal["supported", "contradicted", "unknown"]
LABELS = ("supported", "contradicted", "unknown")

_BEFORE = """\
TASK: check <<which>> below against the documents above.
supported - every part of the claim follows from the documents, one alone or several together; quote each passage needed.
contradicted - some part of the claim cannot be true if the documents are; quote what it conflicts with.
unknown - everything else: partial support, silence, or documents that conflict with each other on it.
RULES: In doubt, unknown. Missing information contradicts nothing, unless a list is stated to be complete. A hedged \
claim is supported by evidence of that strength; a firm claim on hedged evidence is unknown. Quotations must match in \
wording and speaker. Claims are no evidence for one another.
evidence: passages copied word for word, each with its document's number; [] if there are none. sources_conflict: true \
only if documents disagree about the claim."""
_QUESTION = """
The document is an answer to the question below: read it as one (a bare "Rome." says what was asked). The question \
itself is no evidence."""
_AFTER = """\
Reply with {"verdicts": [{"claim": number, "evidence": [{"doc": number, "quote": text}], "reason": text, \
"sources_conflict": boolean, "verdict": label}]}: exactly <<count>>, one for each of <<which>>."""

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "verdicts": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "claim": {"type": "integer"},
                    "evidence": QUOTES_SCHEMA,
                    "reason": {"type": "string"},
                    "sources_conflict": {"type": "boolean"},
                    "verdict": {"type": "string", "enum": list(LABELS)},
                },
                "required": ["claim", "evidence", "reason", "sources_conflict", "verdict"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["verdicts"],
    "additionalProperties": False,
}
_READER = 1


@dataclass(frozen=True, slots=True)
class Verdict:
    """What was found of one claim.

    `evidence` holds only quotes that stand in the documents. `undecided` is True where a panel has no majority: the
    label is then `unknown`.

    >>> verdict = Verdict("It is old.", "supported", "The text dates it to 1889.")
    >>> verdict.supported, verdict.contradicted
    (True, False)
    """

    claim: str
    label: CheckLabel
    reason: str
    evidence: tuple[Quote, ...] = ()
    sources_conflict: bool = False
    undecided: bool = False

    @property
    def supported(self) -> bool:
        """Whether the label is `supported`."""
        return self.label == "supported"

    @property
    def contradicted(self) -> bool:
        """Whether the label is `contradicted`."""
        return self.label == "contradicted"


@dataclass(frozen=True, slots=True)
class CheckClaims:
    """Ask of each claim whether the documents support it; `claims` may be given as texts or as `Claim` values.

    `question` is given where the evidence is itself an answer to it. The answer is `Items[Verdict]`, one for each claim.
    Flags: `dropped:N` unknown or repeated numbers; `quote_not_found` where a claim is called supported and none of the
    quotes for it stands in the documents (asked again once before); `split` where the documents did not fit at once.
    Without claims nothing is asked; blank documents leave every claim unknown and nothing is asked either. Definitions
    follow VeriScore (arXiv 2406.19276) in calling conflicting evidence unknown.

    >>> task = CheckClaims(("The tower is in Rome.",), ("The tower stands in Paris.",))
    >>> verdicts = task.read({"verdicts": [{"claim": 1, "evidence": [{"doc": 1, "quote": "in Paris"}],
    ...     "reason": "It stands in Paris.", "sources_conflict": False, "verdict": "contradicted"}]})
    >>> verdicts[0].label, verdicts[0].evidence[0].start
    ('contradicted', 17)
    """

    claims: tuple[str, ...]
    documents: tuple[str, ...]
    question: str | None = None

    kind: ClassVar[str] = "check"
    version: ClassVar[str] = ""
    shared: ClassVar[bool] = False

    def __post_init__(self) -> None:
        given: Sequence[str | Claim] = tuple(self.claims)
        object.__setattr__(self, "claims", tuple(c.text if isinstance(c, Claim) else c for c in given))
        object.__setattr__(self, "documents", tuple(self.documents))

    @property
    def data(self) -> Mapping[str, Any]:
        """The fields, JSON-able."""
        return {"claims": list(self.claims), "documents": list(self.documents), "question": self.question}

    @property
    def schema(self) -> dict[str, Any]:
        """`verdicts: [{claim, evidence, reason, sources_conflict, verdict}]`."""
        return _SCHEMA

    def messages(self, reason_language: str | None = None) -> list[Message]:
        """Documents, rules, question, numbered claims, what to reply."""
        which = range_of(self._wanted(), "claim")
        question = self.question if self.question and not is_blank(self.question) else None
        before = substitute(_BEFORE, {"which": which}) + (_QUESTION if question else "")
        after = substitute(_AFTER, {"count": counted(len(self.claims), "entry", "entries"), "which": which})
        blocks = [("question", question), ("claims", numbered(self.claims))]
        return compose(before, blocks, after, self.documents, reason_language)

    def read(self, reply: Any) -> Items[Verdict]:
        """One verdict for each claim. Raises `ReplyError`."""
        reading = items.read_items(reply, self._shape(), self._wanted())
        return Items(reading.values, items.joined_flags(reading.flags, _quote_flags(reading.values)))

    def doubts(self, answer: Items[Verdict]) -> tuple[int, ...]:
        """The claims called supported without a quote that stands in the documents."""
        return tuple(n for n, verdict in enumerate(answer, start=1) if _unproved(verdict))

    def merge(self, previous: Mapping[str, Any], reply: Any) -> Any:
        """A re-ask's verdicts laid over the valid ones before."""
        return items.merge_items(previous, reply, self._shape(), self._wanted())

    def vote(self, answers: Mapping[str, Items[Verdict] | None], rule: Rule) -> Vote[Items[Verdict]]:
        """Claim by claim the label of more than half of the judges asked, else `unknown`, flagged `undecided`."""
        ballots = by_item(answers)
        voted = tuple(_voted(ballot, rule) for ballot in ballots)
        labels = tuple(choices(ballot, lambda verdict: verdict.label) for ballot in ballots)
        flags = ("undecided",) if any(verdict.undecided for verdict in voted) else ()
        members = (answer.flags for answer in answers.values() if answer is not None)
        disagreement = mean_disagreement(entropy(ballot.values()) for ballot in labels)
        # A panel's own flags say what is true of the panel's verdicts; counts of what members dropped stay with them.
        kept = {flag for flag in chain.from_iterable(members) if flag == "split"}
        answer = Items(voted, items.joined_flags(kept, flags, _quote_flags(voted)))
        return Vote(answer, disagreement, labels, flags)

    def split(self, max_tokens: int | None = None) -> Split:
        """Ten claims a call, each with the same documents; documents that do not fit in groups that do."""
        if not self.claims:
            return Split((), lambda answers: Items(()))
        if all(is_blank(document) for document in self.documents):
            silent = tuple(Verdict(claim, "unknown", "there is nothing to check it against") for claim in self.claims)
            return Split((), lambda answers: Items(silent))
        starts = range(0, len(self.claims), ITEMS_PER_CALL)
        chunks = [replace(self, claims=self.claims[start : start + ITEMS_PER_CALL]) for start in starts]
        evidence = groups_for(chunks, self.documents, max_tokens)
        parts = fitting(shown_to(chunks, evidence), max_tokens)
        return Split(parts, lambda answers: _join(answers, evidence))

    def _wanted(self) -> range:
        return range(1, len(self.claims) + 1)

    def _shape(self) -> items.Shape[Verdict]:
        return items.Shape("verdicts", "claim", "claim", self._verdict, lambda verdict: verdict.label)

    def _verdict(self, number: int, item: Mapping[str, Any]) -> Verdict:
        return Verdict(
            self.claims[number - 1],
            cast(CheckLabel, items.label(item.get("verdict"), LABELS, "verdict")),
            items.text(item.get("reason"), "reason"),
            verified(items.listed(item, "evidence"), self.documents),
            items.truth(item.get("sources_conflict"), "sources_conflict"),
        )


def _unproved(verdict: Verdict) -> bool:
    return verdict.supported and not verdict.evidence


def _quote_flags(verdicts: Sequence[Verdict]) -> tuple[str, ...]:
    return ("quote_not_found",) if any(_unproved(verdict) for verdict in verdicts) else ()


def _voted(ballot: Mapping[str, Verdict | None], rule: Rule) -> Verdict:
    given = [(judge, verdict) for judge, verdict in ballot.items() if verdict is not None]
    conflict = majority_label(choices(ballot, lambda verdict: str(verdict.sources_conflict)), rule) == "True"
    label = majority_label(choices(ballot, lambda verdict: verdict.label), rule)
    claim = given[0][1].claim
    if label is None:
        said = "; ".join(f"{judge}: {verdict.label}" for judge, verdict in given)
        return Verdict(claim, "unknown", f"no majority ({said})", (), conflict, undecided=True)
    winners = [verdict for _, verdict in given if verdict.label == label]
    evidence = dict.fromkeys(quote for verdict in winners for quote in verdict.evidence)
    return Verdict(claim, cast(CheckLabel, label), winners[0].reason, tuple(evidence), conflict)


def _join(answers: Sequence[Items[Verdict]], evidence: Sequence[Group]) -> Items[Verdict]:
    flags = items.joined_flags(*(answer.flags for answer in answers))
    if len(evidence) == 1:
        return Items(tuple(chain.from_iterable(answers)), flags)
    joined = tuple(_over_evidence(values) for values in by_group(answers, evidence))
    kept = [flag for flag in flags if flag != "quote_not_found"]
    return Items(joined, items.joined_flags(["split"], kept, _quote_flags(joined)))


def _over_evidence(verdicts: Sequence[Verdict]) -> Verdict:
    """One claim over the parts of the evidence: supported if any part supports, else contradicted if any contradicts."""
    labels = {verdict.label for verdict in verdicts}
    label = next(label for label in LABELS if label in labels)
    deciding = [verdict for verdict in verdicts if verdict.label == label]
    quotes = dict.fromkeys(quote for verdict in deciding for quote in verdict.evidence)
    conflict = any(verdict.sources_conflict for verdict in verdicts) or {"supported", "contradicted"} <= labels
    return replace(deciding[0], evidence=tuple(quotes), sources_conflict=conflict)


_CLAIMS, _DOCUMENTS = ("The hall is old.", "It is red."), ("The hall was built in 1901.",)
CheckClaims.version = version_of(
    (CheckClaims(_CLAIMS, _DOCUMENTS), CheckClaims(_CLAIMS[:1], _DOCUMENTS, "How old?")), _READER
)
