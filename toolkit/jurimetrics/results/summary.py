"""One line for each metric, judge and variant, the bill of a run, and the notes that must be read beside them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from jurimetrics.display import count, dollars
from jurimetrics.results.parts import references_told
from jurimetrics.results.reading import of_recorded_judges
from jurimetrics.results.shares import Bill
from jurimetrics.stats.estimate import FEWEST_GROUPS, mean_estimate, share_estimate

STATUSES = ("ok", "undefined", "not_applicable", "failed")
Reals = npt.NDArray[np.float64]
_MOST_UNSTEADY = 5


@dataclass(frozen=True, slots=True)
class Totals:
    """What a run took and what failed, each call counted once.

    `cost_usd` is None where the price of any call is unknown, `at_least_usd` the sum of the known ones, `unpriced_calls`
    how many are not; `saved_usd` what answers from the store would have cost, as far as known. `calls` requests sent,
    `cached_calls` answers from the store. Tokens are of the requests sent, None where an endpoint did not count them,
    `at_least_tokens` the sum of those it did. `failed_rows` rows of the score frame, `failed_calls` requests.

    >>> print(Totals(0.5, 0.5, 0, 0.25, 10, 3, 800, 100, 900, 1, 2))
    cost $0.5, saved $0.25; 10 calls, 3 from the store; 900 tokens; 1 row failed
    >>> print(Totals(None, 0.5, 2, 0, 9, 0, None, None, 0, 0, 0))
    cost at least $0.5 (2 calls without a known price), saved $0; 9 calls, 0 from the store; tokens unknown; 0 rows failed
    """

    cost_usd: float | None
    at_least_usd: float
    unpriced_calls: int
    saved_usd: float | None
    calls: int
    cached_calls: int
    prompt_tokens: int | None
    completion_tokens: int | None
    at_least_tokens: int
    failed_rows: int
    failed_calls: int

    def __str__(self) -> str:
        if self.cost_usd is not None:
            cost = f"cost {dollars(self.cost_usd)}"
        elif self.unpriced_calls:
            unpriced = f"{count(self.unpriced_calls, 'call')} without a known price"
            cost = f"cost at least {dollars(self.at_least_usd)} ({unpriced})"
        else:
            cost = "cost unknown"
        tokens = count(self.at_least_tokens, "token")
        if self.prompt_tokens is None or self.completion_tokens is None:
            tokens = f"at least {tokens}" if self.at_least_tokens else "tokens unknown"
        calls = f"{count(self.calls, 'call')}, {self.cached_calls:,} from the store"
        saved = "an unknown amount" if self.saved_usd is None else dollars(self.saved_usd)
        return f"{cost}, saved {saved}; {calls}; {tokens}; {count(self.failed_rows, 'row')} failed"


def total_up(calls: pd.DataFrame, failed_rows: int, recorded: bool) -> Totals:
    """The bill of a call frame. `recorded`: some scores came from judges whose calls nobody has."""
    stored = calls["from_store"].to_numpy(dtype=bool)
    cost = calls["cost_usd"].to_numpy(dtype=np.float64)
    saved = calls["saved_usd"].to_numpy(dtype=np.float64)[stored]
    tokens = ("prompt_tokens", "completion_tokens")
    prompt, completion = (calls[name].to_numpy(dtype=np.float64, na_value=np.nan)[~stored] for name in tokens)
    unpriced = int(np.isnan(cost).sum())
    at_least = math.fsum(cost[~np.isnan(cost)])

    def known(tokens: Reals) -> int | None:
        return None if recorded or np.isnan(tokens).any() else int(tokens.sum())

    return Totals(
        cost_usd=None if recorded or unpriced else at_least,
        at_least_usd=at_least,
        unpriced_calls=unpriced,
        saved_usd=None if np.isnan(saved).all() and len(saved) else math.fsum(saved[~np.isnan(saved)]),
        calls=int((~stored).sum()),
        cached_calls=int(stored.sum()),
        prompt_tokens=known(prompt),
        completion_tokens=known(completion),
        at_least_tokens=int(np.nansum(prompt) + np.nansum(completion)),
        failed_rows=failed_rows,
        failed_calls=int((calls["status"] != "ok").sum()),
    )


def summarise(
    rows: pd.DataFrame, taken: Bill, with_answer: npt.NDArray[np.bool_], settings: Mapping[str, Any], level: float
) -> pd.DataFrame:
    """One line for each metric, judge and variant; see `Results.summary` for the columns.

    `rows` as `read_light_scores` gives them; `with_answer` says of each whether its record has an answer.
    """
    keys = _lines(rows, settings)
    line = pd.MultiIndex.from_frame(keys).get_indexer(pd.MultiIndex.from_frame(rows[list(keys.columns)]))
    cost, prompt, completion = (taken.share(name) for name in ("cost_usd", "prompt_tokens", "completion_tokens"))
    elsewhere = of_recorded_judges(rows, settings)
    lines = len(keys)
    extra = pd.DataFrame(
        {
            "cost_usd": _sum(np.where(elsewhere, np.nan, cost.strict), line, lines),
            "at_least_cost": _sum(cost.known, line, lines),
            "tokens": _sum(np.where(elsewhere, np.nan, prompt.strict + completion.strict), line, lines),
            "calls": taken.distinct("sent", line, lines).astype(np.int64),
            "cached": taken.distinct("cached", line, lines).astype(np.int64),
        }
    )
    metrics = settings["metrics"]
    parts = (
        np.split(np.argsort(line, kind="stable"), np.cumsum(np.bincount(line, minlength=lines))[:-1]) if lines else []
    )
    found = [
        _line(rows.iloc[part], with_answer[part], metrics.get(metric, {}), level)
        for part, metric in zip(parts, keys["metric"], strict=True)
    ]
    columns = list(_line(rows.iloc[:0], with_answer[:0], {}, level))
    return pd.concat([keys, pd.DataFrame(found, columns=columns), extra], axis=1)


def notes(
    summary: pd.DataFrame,
    totals: Totals,
    failures: Mapping[str, int],
    calls: pd.DataFrame,
    settings: Mapping[str, Any],
    unanswered: Iterable[str] = (),
    questions: Mapping[str, int] | None = None,
) -> list[str]:
    """What must be read beside a summary, one sentence each, the most important first.

    `calls` has the columns judge, model_returned and fingerprint; `unanswered` says which variants lack answers;
    `questions` to how many each model wrote the reference, as `questions_of_models` counts them.
    """
    found = []
    if settings.get("interrupted"):
        found.append("The evaluation was interrupted; what was done until then is here.")
    found.extend(str(note) for note in settings.get("notes", ()))
    if totals.failed_rows:
        most_first = sorted(failures.items(), key=lambda item: (-item[1], item[0]))
        kinds = ", ".join(f"{kind} {number:,}" for kind, number in most_first)
        found.append(f"{count(totals.failed_rows, 'row')} failed ({kinds}); failures() lists them.")
    found.extend(_reference_notes(settings, questions or {}))
    found.extend(unanswered)
    found.extend(_answered_notes(summary))
    found.extend(_repeat_notes(summary))
    found.extend(_endpoint_notes(calls))
    if totals.unpriced_calls:
        found.append(f"Costs are at least what is shown: {count(totals.unpriced_calls, 'call')} without a known price.")
    if ((summary["n"] > 0) & summary["low"].isna()).any():
        found.append(
            f"No interval is given for fewer than {FEWEST_GROUPS} groups or where all values are equal; "
            "the column method says which."
        )
    if guessed := [name for name, one in settings["metrics"].items() if one.get("range_from_data")]:
        found.append(f"Range taken from the data, higher taken as better: {', '.join(guessed)}.")
    return found


def _reference_notes(settings: Mapping[str, Any], questions: Mapping[str, int]) -> Iterable[str]:
    """A line where models wrote references: what is held against them is held against a model, not a person."""
    models = settings.get("reference_models") or {}
    if models:
        said = ", ".join(f"{model} wrote that of {of}" for model, of in references_told(models, questions).items())
        yield (
            f"References written by a model: {said}. Metrics that need a reference compare with that model there, "
            "not with a person; their rows are flagged reference_by_model."
        )


def _answered_notes(summary: pd.DataFrame) -> Iterable[str]:
    """A line for each way in which the variants differ in how often they answer, with all metrics that see it so.

    Of the judges of a metric the one that sees most difference is taken.
    """
    found: dict[str, tuple[list[str], list[str]]] = {}
    for metric, lines in summary.dropna(subset=["answered"]).groupby("metric", sort=False):
        spread = lines.groupby("judge", sort=False)["answered"].agg(lambda shares: float(shares.max() - shares.min()))
        if not len(spread) or not spread.max() > 0:
            continue
        judge = spread.idxmax()
        seen = lines[lines["judge"] == judge]
        pairs = zip(seen["variant"], seen["answered"], strict=True)
        shares = ", ".join(f"{name or '(no name)'} {share:.1%}" for name, share in pairs)
        metrics, judges = found.setdefault(shares, ([], []))
        metrics.append(str(metric))
        judges.append(str(judge))
    for shares, (metrics, judges) in found.items():
        named = list(dict.fromkeys(judges))
        yield (
            f"{', '.join(metrics)}: the variants differ in how often they answer ({shares}; "
            f"judge{'' if len(named) == 1 else 's'} {', '.join(named)}). "
            "A mean that leaves non-answers out favours the one that answers less."
        )


def _repeat_notes(summary: pd.DataFrame) -> Iterable[str]:
    """One line on judges that gave other scores when asked again, those first whose verdicts flip most."""
    unsteady = summary[summary["within_sd"] > 0]
    unsteady = unsteady.sort_values(["flip_rate", "within_sd"], ascending=False, na_position="last", kind="stable")
    said = []
    for line in unsteady.head(_MOST_UNSTEADY).to_dict("records"):
        of = f" of {line['variant']}" if line["variant"] else ""
        flips = (
            "" if math.isnan(line["flip_rate"]) else f", {line['flip_rate']:.0%} of pairs flip between pass and fail"
        )
        said.append(f"{line['metric']}{of} by {line['judge']} (standard deviation {line['within_sd']:.2g}{flips})")
    if len(unsteady) > _MOST_UNSTEADY:
        said.append(f"and {len(unsteady) - _MOST_UNSTEADY} more")
    if said:
        yield f"Asked again about the same answer, a judge gives other scores: {'; '.join(said)}."


def _endpoint_notes(calls: pd.DataFrame) -> Iterable[str]:
    """A line for each judge that was not served by one and the same model throughout."""
    columns = {"model_returned": "models", "fingerprint": "system fingerprints"}
    for judge, mine in calls.groupby("judge", sort=True):
        for column, word in columns.items():
            names = sorted(mine[column].dropna().unique())
            if len(names) > 1:
                shown = ", ".join(names[:_MOST_UNSTEADY]) + (", ..." if len(names) > _MOST_UNSTEADY else "")
                yield f"{judge} was answered under {len(names)} {word} ({shown}), so it may not be one judge throughout."


def _lines(rows: pd.DataFrame, settings: Mapping[str, Any]) -> pd.DataFrame:
    """Metric, judge and variant of each line: in declared order, judges by name, a panel before its members."""
    keys = rows.groupby(["metric", "judge", "variant"], sort=False, observed=True)["panel"].any().reset_index()
    order = [
        _places(keys["variant"], settings.get("variants") or ()),
        _places(keys["judge"], ()),
        (~keys["panel"].to_numpy(dtype=bool)).astype(int),
        _places(keys["metric"], settings["metrics"]),
    ]
    return keys.iloc[np.lexsort(order)].drop(columns="panel").reset_index(drop=True)


def _places(values: pd.Series[Any], declared: Iterable[str]) -> npt.NDArray[np.intp]:
    """The place of each value among the declared ones, the rest after them by name."""
    names = list(dict.fromkeys([*declared, *sorted(set(values))]))
    places: npt.NDArray[np.intp] = pd.Index(names).get_indexer(pd.Index(values))
    return places


def _line(
    rows: pd.DataFrame, with_answer: npt.NDArray[np.bool_], metric: Mapping[str, Any], level: float
) -> dict[str, Any]:
    status = rows["status"].to_numpy()
    counts = {name: int((status == name).sum()) for name in STATUSES}
    scored = rows[status == "ok"]
    ids, names = pd.factorize(scored["id"])
    group = scored["group"].to_numpy()[np.unique(ids, return_index=True)[1]]
    scores = scored["score"].to_numpy(dtype=np.float64)
    bounds = tuple(metric["range"]) if metric.get("range") else None
    mean = mean_estimate(_per_record(scores, ids), group, level, bounds=bounds)
    passes = scored["passed"].to_numpy(dtype=np.float64, na_value=np.nan)
    rate = share_estimate(_per_record(passes, ids), group, level)
    answers = int(with_answer.sum())
    claims = metric.get("asks_claims") and answers
    asked = len(rows)
    disagreement = rows["disagreement"].to_numpy(dtype=np.float64)
    return {
        "mean": _nan(mean.value), "low": _nan(mean.low), "high": _nan(mean.high), "level": level,
        "n": mean.n, "method": mean.method,
        "answered": 1 - (rows["no_claims"].to_numpy(dtype=bool) & with_answer).sum() / answers if claims else math.nan,
        "asked": asked, **counts, "missing": (asked - counts["ok"]) / asked if asked else math.nan,
        "pass_rate": _nan(rate.value), "pass_low": _nan(rate.low), "pass_high": _nan(rate.high),
        "threshold": _nan(metric.get("threshold")), "higher_is_better": bool(metric.get("higher_is_better", True)),
        "disagreement": _mean(disagreement), **_within(scores, passes, ids, len(names)),
    }  # fmt: skip


def _within(scores: Reals, passes: Reals, ids: npt.NDArray[np.intp], records: int) -> dict[str, float]:
    """Spread within one judge over the repeats of a record, and how often two repeats differ in pass or fail."""
    repeats = np.bincount(ids, minlength=records)
    several = repeats > 1
    if not several.any():
        return {"within_sd": math.nan, "flip_rate": math.nan}
    centred = scores - _per_record(scores, ids)[ids]
    variances = np.bincount(ids, weights=centred**2, minlength=records)[several] / (repeats[several] - 1)
    passing = np.bincount(ids, weights=passes, minlength=records)[several]
    pairs = repeats[several] * (repeats[several] - 1) / 2
    return {
        "within_sd": math.sqrt(float(variances.mean())),
        "flip_rate": float((passing * (repeats[several] - passing) / pairs).mean()),
    }


def _per_record(values: Reals, ids: npt.NDArray[np.intp]) -> Reals:
    """Means over the repeats of each record."""
    return np.bincount(ids, weights=values) / np.bincount(ids) if len(ids) else values


def _sum(values: Reals, line: npt.NDArray[np.intp], lines: int) -> Reals:
    return np.bincount(line, weights=values, minlength=lines).astype(np.float64)


def _mean(values: Reals) -> float:
    there = values[~np.isnan(values)]
    return math.fsum(there) / len(there) if len(there) else math.nan


def _nan(value: float | None) -> float:
    return math.nan if value is None else value


def count_kinds(errors: Iterable[str]) -> dict[str, int]:
    """How many failures there are of each kind, from texts "kind: message".

    >>> count_kinds(["timeout: 60 s", "timeout: 61 s", "unparsed: no JSON"])
    {'timeout': 2, 'unparsed': 1}
    """
    return dict(Counter(error.partition(":")[0] for error in errors))
