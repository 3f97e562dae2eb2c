"""`jurimetrics doctor`: what a judge's endpoint supports and costs, and how to write it down."""

from __future__ import annotations

import textwrap
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from jurimetrics.cli.console import BAD_INPUT, FAILED_ROWS, answering, one_line, say, warn, width
from jurimetrics.errors import InputError

if TYPE_CHECKING:
    from jurimetrics.judges.chat import ChatJudge
    from jurimetrics.judges.probe import Findings

_LABEL = 16


@answering
def doctor(
    model: Annotated[str | None, typer.Option(help="The model's name; on Azure the deployment's.")] = None,
    base_url: Annotated[str | None, typer.Option(help="The address of an OpenAI-compatible server.")] = None,
    api_key_env: Annotated[str | None, typer.Option(help="The NAME of the variable that holds the key.")] = None,
    azure_endpoint: Annotated[str | None, typer.Option(help="The address of an Azure resource.")] = None,
    api_version: Annotated[str | None, typer.Option(help="A version of Azure's interface.")] = None,
    price_as: Annotated[str | None, typer.Option(help="The model of the price list whose price holds.")] = None,
    max_tokens: Annotated[int | None, typer.Option(help="The limit of the output to try.")] = None,
    timeout: Annotated[float, typer.Option(help="Seconds for one request.")] = 60.0,
    experiment: Annotated[
        Path | None, typer.Option(help="An experiment file, or its folder: all its judges, instead of --model.")
    ] = None,
) -> None:
    """Ask an endpoint a few tiny questions; print what it supports and costs, and the judge to write down.

    Exit status: 0 all answered, 1 an endpoint gave no usable reply, 2 one cannot be asked at all (nobody listens, the
    key is wrong, the model is not there), 130 interrupted.
    """
    if experiment is not None:
        judges = _of_experiment(experiment)
    elif model is not None:
        from jurimetrics.judges.chat import ChatJudge

        judges = [
            ChatJudge(
                model,
                base_url=base_url,
                api_key_env=api_key_env,
                azure_endpoint=azure_endpoint,
                api_version=api_version,
                price_as=price_as,
                max_tokens=max_tokens,
                timeout=timeout,
            )
        ]
    else:
        raise InputError("give --model (and --base-url), or --experiment with the path of an experiment file")
    statuses = [_examine(judge) for judge in judges]
    if any(statuses):
        raise typer.Exit(max(statuses))


def _of_experiment(path: Path) -> list[ChatJudge]:
    from jurimetrics.experiment import load_experiment
    from jurimetrics.judges.chat import ChatJudge

    judges = load_experiment(path).judges
    for judge in judges:
        if not isinstance(judge, ChatJudge):
            say(f"{one_line(judge.name, 60)}: computed here, there is no endpoint to ask\n")
    return [judge for judge in judges if isinstance(judge, ChatJudge)]


def _examine(judge: ChatJudge) -> int:
    """Probe one judge and print what was found; the exit status for it."""
    import asyncio

    from jurimetrics.judges.probe import probe

    try:
        findings = asyncio.run(probe(judge))
    except InputError as error:
        warn("jurimetrics: " + one_line(" ".join(str(error).split()), 1000))
        return BAD_INPUT
    say(report(findings, width()))
    return FAILED_ROWS if findings.problem else 0


def report(findings: Findings, columns: int) -> str:
    """What was found, one line for each thing, and the line of code to use."""
    judge = findings.judge
    lines = [one_line(f"{judge.name} at {judge.endpoint.address}", columns), ""]
    for label, text in _rows(findings):
        wrapped = textwrap.wrap(one_line(text, 600), columns - _LABEL) or ["-"]
        lines += [(label if at == 0 else "").ljust(_LABEL) + line for at, line in enumerate(wrapped)]
    return "\n".join([*lines, "", *(f"{one_line(line, 600)}" for line in advice(findings)), ""])


def _rows(findings: Findings) -> list[tuple[str, str]]:
    latencies = [trace.latency_s for trace in findings.traces if trace.latency_s]
    took = f"{min(latencies):.2f} to {max(latencies):.2f} s a request" if latencies else "-"
    returned = findings.model or "not told"
    mark = f", fingerprint {findings.fingerprint}" if findings.fingerprint else ""
    limits = "; ".join(f"{name}: {value}" for name, value in findings.headers.items()) or "no headers tell of any"
    rows = [("answers", f"no usable reply: {findings.problem}" if findings.problem else f"yes, {took}")]
    rows += [("model returned", returned + mark)]
    rows += [(f"{name}", found) for name, found in findings.formats.items()]
    rows += [("parameters", parameters(findings)), ("logprobs", findings.logprobs)]
    rows += [("tokens told", _tokens(findings)), ("price", price(findings)), ("rate limits", limits)]
    cost = findings.cost_usd
    spent = "an unknown amount" if cost is None else f"${cost:.6f}"
    return [*rows, ("this probe", f"{len(findings.traces)} requests, {spent}")]


def parameters(findings: Findings) -> str:
    """Which parameters of a request the endpoint takes, under which name, and which it refuses."""
    renamed = dict(findings.learned.renamed)
    parts = [f"takes {', '.join(findings.taken)}"] if findings.taken else []
    parts += [f"takes {name} as {other}" for name, other in renamed.items()]
    refused = [name for name in findings.learned.refused if name not in renamed and name != "response_format"]
    parts += [f"refuses {', '.join(refused)} (left out by itself from then on)"] if refused else []
    return "; ".join(parts) or "-"


def _tokens(findings: Findings) -> str:
    usage = findings.usage
    if usage.prompt is None and usage.completion is None:
        return "none: costs stay unknown, and only a budget of calls can be kept"
    parts = {
        "prompt": usage.prompt,
        "completion": usage.completion,
        "cached": usage.cached,
        "reasoning": usage.reasoning,
    }
    told = [f"{name} {number}" for name, number in parts.items() if number is not None]
    silent = [name for name, number in parts.items() if number is None]
    return ", ".join(told) + (f"; not {' and '.join(silent)}" if silent else "")


def price(findings: Findings) -> str:
    """What a million tokens cost and under which name that is known."""
    rates, judge = findings.per_million, findings.judge
    if rates is None:
        return 'unknown: give price=(prompt, completion) per million tokens, 0 for free, or price_as="a listed model"'
    if judge.price is not None:
        return f"${rates[0]:g} prompt, ${rates[1]:g} completion per million tokens, as declared"
    named = "" if findings.priced_as == judge.model else "; the configured name is not in the list"
    return f"${rates[0]:g} prompt, ${rates[1]:g} completion per million tokens, as {findings.priced_as}{named}"


def advice(findings: Findings) -> list[str]:
    """The judge as a line of code, and what has to be added by hand."""
    judge = findings.judge
    lines = ["use it as", "  " + code(findings)]
    if findings.per_million is None and judge.price is None:
        lines.append("  (add price=(prompt, completion), dollars per million tokens, or price=0 where it is free)")
    if judge.base_url is not None and str(judge.base_url) != judge.endpoint.address:
        parts = judge.endpoint.secrets()
        if parts:
            lines.append("  (the user part or the query of the address is left out here)")
    if judge.extra_headers:
        lines.append("  (the values of the headers are left out here)")
    return lines


def code(findings: Findings) -> str:
    """The line of code that makes this judge, without what the endpoint refuses and without secrets."""
    judge, refused = findings.judge, findings.learned.dropped
    kept = judge.settings()
    azure = judge.azure_endpoint is not None
    listed = findings.priced_as
    options: dict[str, object] = {
        "name": None if judge.name == judge.model else judge.name,
        "azure_endpoint" if azure else "base_url": judge.endpoint.address if azure or judge.base_url else None,
        "api_version": judge.api_version,
        "api_key_env": judge.api_key_env,
        "family": judge.family,
        "seed": None if "seed" in refused else judge.seed,
        "max_tokens": judge.max_tokens,
        "max_input_tokens": judge.max_input_tokens,
        "max_concurrency": judge.max_concurrency,
        "requests_per_minute": judge.requests_per_minute,
        "tokens_per_minute": judge.tokens_per_minute,
        "extra_headers": dict.fromkeys(judge.extra_headers, "...") if judge.extra_headers else None,
        "extra_body": kept["extra_body"] or None,
        "price": judge.price,
        "price_as": judge.price_as or (listed if judge.price is None and listed != judge.model else None),
    }
    given = [f"{name}={_quoted(value)}" for name, value in options.items() if value is not None]
    if "temperature" in refused or judge.temperature is None:
        given.append("temperature=None")
    elif judge.temperature != 0:
        given.append(f"temperature={judge.temperature!r}")
    if judge.timeout != 60.0:
        given.append(f"timeout={judge.timeout!r}")
    return f"ChatJudge({', '.join([_quoted(judge.model), *given])})"


def _quoted(value: object) -> str:
    import json

    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else repr(value)
