"""What the user asked for, checked before anything is sent: metrics, judges, panel, extractor."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from jurimetrics.engine.cascading import check_cascade
from jurimetrics.engine.limits import PerMinute
from jurimetrics.engine.rows import Asked
from jurimetrics.errors import InputError
from jurimetrics.judges.cascade import Cascade
from jurimetrics.judges.chat import ChatJudge
from jurimetrics.judges.embedders import EmbeddedEmbedder
from jurimetrics.judges.judge import Judge
from jurimetrics.judges.panel import Panel, check_names
from jurimetrics.metrics import resolve
from jurimetrics.metrics.metric import Metric
from jurimetrics.tasks.claims import ExtractClaims
from jurimetrics.tasks.documents import RateDocuments
from jurimetrics.tasks.embed import EmbedTexts
from jurimetrics.tasks.rate import RateRubric

Judges = Judge | Sequence[Judge] | Panel | Cascade
Metrics = Metric | str | Sequence[Metric | str]


@dataclass(frozen=True)
class Setup:
    """A checked plan, who splits claims, and who turns texts into vectors."""

    plan: Asked
    extractors: tuple[Judge, ...]
    embedder: Judge
    embeds: bool
    """Whether the embedder was given, or is declared to be asked; else nothing of it is loaded, checked or kept."""

    def judges(self) -> list[Judge]:
        """Everybody who may be asked: the members, and an extractor from outside."""
        return [*self.plan.judges, *(judge for judge in self.extractors if judge not in self.plan.judges)]

    def places(self, concurrency: int) -> dict[str, int]:
        """How many requests may be in flight at each endpoint: the smallest wish of its judges, by endpoint key."""
        return places_of((*self.judges(), self.embedder), concurrency)

    def per_minute(self) -> dict[str, PerMinute]:
        """What may be sent to each endpoint in a minute: the smallest wish of its judges, by endpoint key."""
        return per_minute_of((*self.judges(), self.embedder))

    def settings(self) -> dict[str, Any]:
        """What the results keep of metrics, judges and panel, JSON-able and without secrets."""
        together = self.plan.panel or self.plan.cascade
        return {
            "metrics": {metric.name: metric_settings(metric) for metric in self.plan.metrics},
            "judges": {judge.name: judge.settings() for judge in self.judges()},
            "panel": None if together is None else together.settings(),
            "embedder": self.embedder.settings() if self.embeds else None,
            "repeats": self.plan.repeats,
        }


def places_of(judges: Iterable[Judge], concurrency: int) -> dict[str, int]:
    """How many requests may be in flight at each endpoint: the smallest wish of whoever is asked there.

    >>> places_of([ChatJudge("m", base_url="http://127.0.0.1:9/v1", max_concurrency=2)], 64).popitem()[1]
    2
    """
    places: dict[str, int] = {}
    for judge in judges:
        if judge.endpoint is not None:
            wish = judge.endpoint.max_concurrency or concurrency
            places[judge.endpoint.key] = min(places.get(judge.endpoint.key, concurrency), wish)
    return places


def per_minute_of(judges: Iterable[Judge]) -> dict[str, PerMinute]:
    """What may be sent to each endpoint in a minute: the smallest wish of whoever is asked there.

    >>> per_minute_of([ChatJudge("m", base_url="http://127.0.0.1:9/v1", requests_per_minute=60)]).popitem()[1]
    PerMinute(requests=60, tokens=None)
    """
    limits: dict[str, PerMinute] = {}
    for judge in judges:
        if judge.endpoint is not None:
            wish = PerMinute(judge.endpoint.requests_per_minute, judge.endpoint.tokens_per_minute)
            limits[judge.endpoint.key] = limits.get(judge.endpoint.key, PerMinute()).meet(wish)
    return limits


def set_up(
    metrics: Metrics, judges: Judges, repeats: int, embedder: Judge | None = None, *, sends: bool = True
) -> Setup:
    """Check what was asked for. Raises `InputError` in one line, before anything is sent.

    `sends` is False where nothing will be: then keys may be missing.
    """
    if isinstance(repeats, bool) or not isinstance(repeats, int) or repeats < 1:
        raise InputError(f"repeats must be a whole number from 1, not {repeats!r}")
    chosen = resolve(metrics)
    panel = judges if isinstance(judges, Panel) else None
    cascade = judges if isinstance(judges, Cascade) else None
    members = _members(judges)
    if panel is not None:
        _check_panel(panel, chosen)
    if cascade is not None:
        check_cascade(cascade, chosen, repeats)
        for stage in cascade.judges:
            if isinstance(stage, Panel):
                _check_panel(stage, chosen)
    extractors = _extractors(members, panel or cascade)
    embeds = embedder is not None or any(EmbedTexts in metric.asks for metric in chosen)
    embedder = _embedder(embedder)
    asked = [*members, *(one for one in extractors if one not in members)]
    for judge in [*asked, *([embedder] if embeds else [])] if sends else ():
        judge.check()
    # What is computed here has no calls, so its name is nobody's in the call frame.
    check_names([judge.name for judge in asked] + [embedder.name] * (embedder.endpoint is not None))
    return Setup(Asked(chosen, members, panel, repeats, cascade), extractors, embedder, embeds)


def _members(judges: Judges) -> tuple[Judge, ...]:
    if isinstance(judges, Panel):
        return tuple(judges.judges)
    if isinstance(judges, Cascade):
        return judges.members
    given = tuple(judges) if isinstance(judges, Sequence) else (judges,)
    for judge in given:
        if isinstance(judge, type) or not callable(getattr(judge, "attempt", None)):
            kinds = "a judge, a list of judges, a Panel or a Cascade"
            raise InputError(f"judges: expected {kinds}, found {type(judge).__name__}")
    if not given:
        raise InputError("judges: none given")
    members = tuple(sorted(given, key=lambda judge: judge.name))
    check_names([judge.name for judge in members])
    return members


def _embedder(given: Judge | None) -> Judge:
    if given is None:
        return EmbeddedEmbedder()
    if isinstance(given, ChatJudge | Panel) or not callable(getattr(given, "attempt", None)):
        raise InputError(f"embedder: expected an EndpointEmbedder or an EmbeddedEmbedder, found {type(given).__name__}")
    return given


def _check_panel(panel: Panel, metrics: Sequence[Metric]) -> None:
    if panel.voting.name != "majority":
        return
    for metric in metrics:
        by_scores = panel.vote_on == "scores" and metric.judged
        by_ratings = RateRubric in metric.asks or RateDocuments in metric.asks
        if metric.levels is None and (by_scores or by_ratings):
            raise InputError(
                f"panel: a majority needs declared levels, and {metric.name} has none; use another rule, such as median"
            )


def _extractors(members: Sequence[Judge], panel: Panel | Cascade | None) -> tuple[Judge, ...]:
    wish = None if panel is None else panel.extractor
    if wish == "each":
        return ()
    if wish is not None:
        assert not isinstance(wish, str)
        return (wish,)
    chat = tuple(judge for judge in members if judge.endpoint is not None)
    return chat or tuple(members)


def metric_settings(metric: Metric) -> dict[str, Any]:
    """What the results keep of a metric."""
    return {
        "range": list(metric.range),
        "higher_is_better": metric.higher_is_better,
        "threshold": metric.threshold,
        "version": metric.version,
        "levels": None if metric.levels is None else list(metric.levels),
        "judged": metric.judged,
        "asks_claims": ExtractClaims in metric.asks,
        "needs": list(metric.needs),
        **({"asks_elsewhere": True} if metric.asks_elsewhere else {}),
    }
