"""What one request cost, in US dollars, by declared prices or by the price list of `genai-prices`.

The list is the one bundled with the package: nothing is fetched. A price is looked up per request, with its date,
because long-context tiers apply to single requests. What is not known is None, never 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any
from urllib.parse import urlsplit

from jurimetrics.errors import InputError
from jurimetrics.judges.judge import Usage

Price = float | tuple[float, ...]
"""US dollars per million tokens: (prompt, completion) or (prompt, completion, cached prompt); 0 is free."""

_DATE = re.compile(r"[-@:_](?:20\d{2}-?(?:0[1-9]|1[0-2])-?(?:0[1-9]|[12]\d|3[01]))$")
# Whose models nobody else serves under their own names: at an address that is not on the list, only these are priced.
# A server in the next room may well serve `mistral-7b`; it does not serve `gpt-4.1-mini`, a gateway does.
_CLOSED = ("anthropic", "google", "openai", "x-ai")
_OPEN_WEIGHTS = re.compile(r"gpt-oss|gpt-2|gemma|grok-1(?!\d)|whisper")


def check_price(price: Any, price_as: str | None) -> None:
    """Raise `InputError` where a declared price cannot be used or `price_as` is not in the price list.

    >>> check_price((0.4, 1.6), None)
    >>> check_price(None, "gpt-4.1-minni")
    Traceback (most recent call last):
    jurimetrics.errors.InputError: price_as: no prices are known for 'gpt-4.1-minni'
    """
    if price is not None and price_as is not None:
        raise InputError("price and price_as exclude each other: give one")
    if price is not None and _rates(price) is None:
        raise InputError(
            "price must be 0 (free) or (prompt, completion[, cached]) in US dollars per million tokens, each 0 or "
            f"more, not {price!r}"
        )
    if price_as is not None and _listed(price_as, None, True) is None:
        raise InputError(f"price_as: no prices are known for {price_as!r}")


def price_call(
    usage: Usage,
    model: str,
    returned: str | None,
    *,
    price: Price | None = None,
    price_as: str | None = None,
    when: datetime | None = None,
    base_url: str | None = None,
) -> float | None:
    """US dollars for the tokens of one request; None where tokens or price are unknown. Never raises.

    Cached tokens are a part of the prompt and reasoning tokens a part of the completion (the OpenAI shape); where a
    part exceeds its whole, the cost is unknown. Cached tokens that the endpoint does not tell are priced as prompt
    tokens. A declared `price` comes first; then the list, for `price_as` alone if it is given, else for the configured
    name, the returned name, and both without a date at their end. `base_url` decides whose price it is; at an address
    that the list does not know, only models that nobody but their maker serves are priced. `when` (default: now;
    without a time zone: UTC) picks among prices that changed.

    >>> usage = Usage(prompt=10_000, completion=1_000, cached=9_000, reasoning=800)
    >>> price_call(usage, "house-name", None, price=(2.5, 10, 1.25))
    0.02375
    >>> price_call(usage, "house-name", None) is None
    True
    """
    if price is not None and _rates(price) == (0.0, 0.0, 0.0):
        return 0.0
    if usage.prompt is None or usage.completion is None or not _adds_up(usage):
        return None
    if price is not None:
        return _declared(price, usage)
    moment = when or datetime.now(UTC)
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    if price_as is not None:
        return _from_list(_listed(price_as, base_url, True), usage, moment)
    for name in _names(model, returned):
        found = _listed(name, base_url, False)
        if found is not None:
            return _from_list(found, usage, moment)
    return None


def _adds_up(usage: Usage) -> bool:
    prompt, completion = usage.prompt or 0, usage.completion or 0
    parts = (prompt, completion, usage.cached or 0, usage.reasoning or 0)
    return min(parts) >= 0 and (usage.cached or 0) <= prompt and (usage.reasoning or 0) <= completion


def _rates(price: Any) -> tuple[float, float, float] | None:
    """Prompt, completion and cached rate; None where `price` is not one of the shapes allowed."""
    if not isinstance(price, tuple | list):
        return (0.0, 0.0, 0.0) if not isinstance(price, bool) and price == 0 else None
    if len(price) not in (2, 3):
        return None
    for rate in price:
        if isinstance(rate, bool) or not isinstance(rate, int | float) or not math.isfinite(rate) or rate < 0:
            return None
    return float(price[0]), float(price[1]), float(price[2] if len(price) == 3 else price[0])


def _declared(price: Price, usage: Usage) -> float | None:
    rates = _rates(price)
    if rates is None or usage.prompt is None or usage.completion is None:
        return None
    cached = usage.cached or 0
    parts = ((usage.prompt - cached) * rates[0], cached * rates[2], usage.completion * rates[1])
    return math.fsum(parts) / 1_000_000


def _names(model: str, returned: str | None) -> Iterator[str]:
    given = [name for name in (model, returned) if name]
    yield from given
    for name in given:
        bare = _DATE.sub("", name)
        if bare != name:
            yield bare


@lru_cache(maxsize=1024)
def _listed(name: str, base_url: str | None, declared: bool) -> tuple[str, str] | None:
    """The (provider, model) under which the list prices `name` at an address; None where it does not.

    `declared`: the user said that this model's price holds, so any provider that knows the name will do.
    """
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    def known(**where: str) -> tuple[str, str] | None:
        try:
            found = calc_price(Tokens(input_tokens=1, output_tokens=1), name, **where)  # type: ignore[call-overload]
        except (LookupError, ValueError):
            return None
        return str(found.provider.id), name

    at_address = known(provider_api_url=_bare(base_url)) if base_url else None
    if at_address is not None:
        return at_address
    by_name = known()
    if by_name is None and declared:
        # Embedding models are on the list and not found by their bare names.
        return next(filter(None, (known(provider_id=maker) for maker in _CLOSED)), None)
    if by_name is None or declared:
        return by_name
    closed = by_name[0] in _CLOSED and not _OPEN_WEIGHTS.search(name.lower())
    return by_name if closed and not (base_url and _is_listed_address(_bare(base_url))) else None


def _is_listed_address(base_url: str) -> bool:
    from genai_prices.data_snapshot import get_snapshot

    return any(re.match(provider.api_pattern, base_url) for provider in get_snapshot().providers)


def _bare(base_url: str) -> str:
    parts = urlsplit(base_url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _from_list(found: tuple[str, str] | None, usage: Usage, when: datetime) -> float | None:
    if found is None:
        return None
    from genai_prices import Usage as Tokens
    from genai_prices import calc_price

    provider, name = found
    tokens = Tokens(input_tokens=usage.prompt, output_tokens=usage.completion, cache_read_tokens=usage.cached or None)
    try:
        found_price = calc_price(tokens, name, provider_id=provider, genai_request_timestamp=when)
    except (LookupError, ValueError, ArithmeticError):
        return None
    listed = found_price.model_price
    # An entry without token prices (images, speech) would make a text cost nothing. Embeddings have no output to price.
    unpriced = listed.input_mtok is None or (listed.output_mtok is None and usage.completion != 0)
    return None if unpriced else float(found_price.total_price)
