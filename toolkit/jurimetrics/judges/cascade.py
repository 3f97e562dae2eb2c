"""A cascade: judges from cheap to strong, of whom the next is asked only where the one before is not sure enough."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from jurimetrics.errors import InputError
from jurimetrics.judges.judge import Judge
from jurimetrics.judges.panel import Panel, check_names

Thresholds = Sequence[float | None] | Mapping[str, Sequence[float | None]]
NEVER = None
"""The threshold of a stage that is never trusted, and so never asked."""


@dataclass(frozen=True)
class Cascade:
    """Judges from cheap to strong that are asked like one: the first answers, and where it is not sure enough the next.

    `judges`: the stages, in the order in which they are asked; each is a judge, or a `Panel` with `vote_on="scores"`. A
    judge is asked as often as `repeats` says and its score is their mean, the members of a panel once. `thresholds`: for
    each stage the confidence from which its score stands, or a mapping of such lists by name of the metric; None is a
    stage that is never trusted, which is then not asked. The last stage needs none: without one it answers whatever its
    confidence, asked once, with one it may abstain (status `undefined`).

    Confidence is by default how far the voices of a stage (repeats, or members of a panel) agree: see
    `agreement_confidence`. `confidence` is a function of the list of their scores instead, higher is surer. Where no score
    comes of a stage because its judge failed, the next is asked; where its voices find no value (no claims), their share
    is the confidence in that.

    The decision is made on the final scores of a metric, as `selective` measures it, so its guarantee is of these rows.
    Members keep their own rows; where the cascade stopped before, these are `not_applicable` and say so. The row of the
    cascade takes no calls of its own. `extractor` as in `Panel`; by default the stages in their order.

    Raises `InputError` where judges, thresholds and names do not go together.

    >>> from jurimetrics.judges.baseline import BaselineJudge
    >>> Cascade([BaselineJudge("a"), BaselineJudge("b")], [0.9], confidence=lambda scores: scores[0]).threshold("any", 1)
    -inf
    """

    judges: Sequence[Judge | Panel]
    thresholds: Thresholds
    confidence: Callable[[list[float]], float] | None = None
    extractor: Judge | Literal["each"] | None = None
    name: str = "cascade"

    def __post_init__(self) -> None:
        object.__setattr__(self, "judges", tuple(self.judges))
        if not self.judges:
            raise InputError("cascade: no judges")
        for stage in self.judges:
            if isinstance(stage, Panel):
                if stage.vote_on != "scores":
                    raise InputError(f'cascade: the panel {stage.name} must vote on scores: vote_on="scores"')
                if stage.extractor is not None:
                    raise InputError(f"cascade: give the extractor of {stage.name} to the cascade")
            elif not callable(getattr(stage, "attempt", None)):
                raise InputError(f"cascade: expected a judge or a Panel, found {type(stage).__name__}")
        stages = [stage.name for stage in self.judges if isinstance(stage, Panel)]
        check_names([*(judge.name for judge in self.members), *stages, self.name])
        by_metric = self.thresholds.items() if isinstance(self.thresholds, Mapping) else [("", self.thresholds)]
        for metric, given in by_metric:
            self._check(f" of {metric}" if metric else "", given)

    def _check(self, whose: str, given: Sequence[float | None]) -> None:
        count = len(self.judges)
        if isinstance(given, str) or len(given) not in (count - 1, count):
            raise InputError(
                f"cascade: thresholds{whose} are one for each stage, the last may go without: {count - 1} or {count}, "
                f"not {given!r}"
            )
        for one in given:
            number = one is None or (isinstance(one, int | float) and not isinstance(one, bool) and math.isfinite(one))
            if not number or (one is not None and self.confidence is None and not 0 <= one <= 1):
                raise InputError(f"cascade: thresholds{whose} lie between 0 and 1 (None: never trusted), not {one!r}")
        if len(given) == count and all(one is None for one in given):
            raise InputError(f"cascade: by the thresholds{whose} no stage is ever trusted")

    @property
    def members(self) -> tuple[Judge, ...]:
        """All judges, stage by stage."""
        return tuple(judge for stage in self.judges for judge in members_of(stage))

    def threshold(self, metric: str, stage: int) -> float | None:
        """From which confidence the stage (from 0) is trusted: minus infinity where it always is, None where never.

        Raises `InputError` for a metric without thresholds.
        """
        given = self.thresholds
        if isinstance(given, Mapping):
            if metric not in given:
                raise InputError(f"cascade: no thresholds of {metric}; there are some of {', '.join(given) or 'none'}")
            given = given[metric]
        return float("-inf") if stage == len(given) else given[stage]

    def settings(self) -> dict[str, Any]:
        """What the results keep of the cascade where a panel's settings stand, JSON-able."""
        given = self.thresholds
        return {
            "name": self.name,
            "rule": "cascade",
            "vote_on": "scores",
            "weights": None,
            "quorum": 1,
            "members": [judge.name for judge in self.members],
            "extractor": self.extractor if isinstance(self.extractor, str) else getattr(self.extractor, "name", None),
            "stages": [stage.name for stage in self.judges],
            "thresholds": {name: list(one) for name, one in given.items()}
            if isinstance(given, Mapping)
            else list(given),
            "confidence": "agreement" if self.confidence is None else getattr(self.confidence, "__name__", "given"),
        }


def members_of(stage: Judge | Panel) -> tuple[Judge, ...]:
    """The judges of a stage."""
    return tuple(stage.judges) if isinstance(stage, Panel) else (stage,)


def agreement_confidence(
    voices: Sequence[float | None], said: float, passes: Callable[[float], bool] | None, span: float
) -> float:
    """How far the voices of a stage agree with what it said, 0 to 1; a voice without a score (None) never agrees.

    `passes` tells pass from fail: the share of voices on the same side as `said`. Without a threshold there are no sides:
    1 minus the distance of the highest and lowest score as a part of `span`, the length of the metric's range, times the
    share of voices that have a score.

    >>> agreement_confidence([0.9, 0.8, 0.2, None], 0.7, lambda score: score >= 0.5, 1.0)
    0.5
    >>> agreement_confidence([3, 4, 4], 11 / 3, None, 4.0)
    0.75
    """
    given = [one for one in voices if one is not None]
    if passes is not None:
        return sum(passes(one) == passes(said) for one in given) / len(voices)
    return (1 - (max(given) - min(given)) / span) * len(given) / len(voices)
