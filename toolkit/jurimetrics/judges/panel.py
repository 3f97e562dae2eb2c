"""A panel: several judges and the rule that makes one verdict of theirs."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal

from jurimetrics.errors import InputError
from jurimetrics.judges.judge import Judge
from jurimetrics.tasks.task import Rule

RULES = ("mean", "median", "trimmed_mean", "majority", "weighted", "min", "max")
SCORES_ONLY = ("min", "max", "trimmed_mean", "callable")
"""Rules that say nothing of verdicts on single claims or sentences."""


@dataclass(frozen=True)
class Panel:
    """Several judges that are asked like one; the order in which they are given never changes a result.

    `rule`: mean, median, trimmed_mean, majority, weighted (with `weights` by judge name), min, max, or a callable that
    takes the list of numbers (by judge name) and returns one. `vote_on="verdicts"` votes claim by claim, sentence by
    sentence, rating by rating; `"scores"` votes on the members' final scores. `quorum`: how many members must have
    answered a task (default: more than half). `extractor`: the judge that splits claims for all, by default the chat
    judges in order of name, the first that succeeds; "each" gives every judge its own and needs `vote_on="scores"`.

    Raises `InputError` where rule, weights, vote and extractor do not go together or two judges share a name.

    >>> from jurimetrics.judges.baseline import BaselineJudge
    >>> Panel([BaselineJudge()], rule="mode")
    Traceback (most recent call last):
    jurimetrics.errors.InputError: panel: no rule 'mode'; rules: mean, median, trimmed_mean, majority, weighted, min, max
    """

    judges: Sequence[Judge]
    rule: str | Callable[[list[float]], float] = "median"
    vote_on: Literal["verdicts", "scores"] = "verdicts"
    weights: Mapping[str, float] | None = None
    quorum: int | None = None
    extractor: Judge | Literal["each"] | None = None
    name: str = "panel"

    def __post_init__(self) -> None:
        self._check_judges()
        members = tuple(sorted(self.judges, key=lambda judge: judge.name))
        object.__setattr__(self, "judges", members)
        extractor = self.extractor
        outside = () if extractor is None or isinstance(extractor, str) or extractor in members else (extractor,)
        check_names([*(judge.name for judge in (*members, *outside)), self.name])
        if not callable(self.rule) and self.rule not in RULES:
            raise InputError(f"panel: no rule {self.rule!r}; rules: {', '.join(RULES)}")
        if self.vote_on not in ("verdicts", "scores"):
            raise InputError(f'panel: vote_on is "verdicts" or "scores", not {self.vote_on!r}')
        if self.vote_on == "verdicts" and self.voting.name in SCORES_ONLY:
            raise InputError(
                f'panel: the rule {self.voting.name} says nothing of single verdicts; use vote_on="scores"'
            )
        if self.extractor == "each" and self.vote_on == "verdicts":
            raise InputError('panel: extractor="each" gives each judge other claims; use vote_on="scores"')
        self._check_weights()
        whole = isinstance(self.quorum, int) and not isinstance(self.quorum, bool)
        if self.quorum is not None and not (whole and 1 <= self.quorum <= len(members)):
            raise InputError(f"panel: quorum {self.quorum!r} is not between 1 and {len(members)}, the number of judges")

    def _check_judges(self) -> None:
        if not isinstance(self.judges, Sequence) or not self.judges:
            raise InputError("panel: no judges")
        for judge in self.judges:
            if not callable(getattr(judge, "attempt", None)):
                raise InputError(f"panel: expected judges, found {type(judge).__name__}")
        if self.extractor not in (None, "each") and not callable(getattr(self.extractor, "attempt", None)):
            raise InputError(f'panel: extractor is a judge or "each", not {self.extractor!r}')

    def _check_weights(self) -> None:
        if (self.weights is not None) != (self.rule == "weighted"):
            raise InputError('panel: weights and the rule "weighted" go together')
        if self.weights is None:
            return
        names = {judge.name for judge in self.judges}
        if set(self.weights) != names:
            raise InputError(f"panel: weights are needed for exactly {', '.join(sorted(names))}")
        for weight in self.weights.values():
            number = isinstance(weight, Real) and not isinstance(weight, bool)
            if not (number and 0 < weight < math.inf):
                raise InputError(f"panel: weights must be numbers above 0, not {weight!r}")

    @property
    def voting(self) -> Rule:
        """The rule as the tasks take it."""
        if callable(self.rule):
            return Rule("callable", function=self.rule)
        return Rule(self.rule, weights=self.weights)

    @property
    def needed(self) -> int:
        """How many members must have answered a task."""
        return self.quorum if self.quorum is not None else len(self.judges) // 2 + 1

    def settings(self) -> dict[str, Any]:
        """What the results keep of the panel, JSON-able."""
        return {
            "name": self.name,
            "rule": self.voting.name,
            "vote_on": self.vote_on,
            "weights": dict(self.weights) if self.weights else None,
            "quorum": self.needed,
            "members": [judge.name for judge in self.judges],
            "extractor": self.extractor if isinstance(self.extractor, str) else getattr(self.extractor, "name", None),
        }


def check_names(names: Sequence[str]) -> None:
    """Raise `InputError` where two judges (or a judge and the panel) have one name, or a name is taken by the toolkit."""
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"two judges are called {name!r}; give one of them another name=")
        if name == "computed" or not name.strip():
            raise InputError(f"a judge cannot be called {name!r}")
