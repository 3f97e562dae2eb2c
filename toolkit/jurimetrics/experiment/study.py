"""The tables of a study: [[prompts]] and [[models]] that write answers, [references], [compare] and [report]."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jurimetrics.errors import InputError
from jurimetrics.experiment.faults import Place, dotted, fault, meant
from jurimetrics.experiment.tables import CompareTable, ExperimentTable, PromptTable, WriterTable

if TYPE_CHECKING:
    from jurimetrics.judges.cascade import Cascade
    from jurimetrics.judges.judge import Judge
    from jurimetrics.judges.panel import Panel
    from jurimetrics.metrics.metric import Metric
    from jurimetrics.prompts import Prompt
    from jurimetrics.variants.variant import Variant

_OF_VARIANT = re.compile(r"^variant '.*?': ")
_WRITTEN_HERE = ("name", "user", "system", "tags", "description", "variables")
_KINDS = 'expected file = "prompts/", or registered = "prompts:/name", or name and user'
_LONGEST_LIST = 12


@dataclass(frozen=True, slots=True)
class Study:
    """What an experiment does besides judging answers that are there; nothing of it without these tables.

    Attributes
    ----------
    variants : every prompt with every model, prompt by prompt, named "prompt/model" as `Variant.grid` names them; ()
        where the records have their answers.
    prompts : the prompts with the places in the file that they come from.
    references : the options of `write_references` that name the model; None where no reference is written.
    compare : the options of `compare`; None where nothing is compared, for which `not_compared` may give a reason.
    report : the file to write, None without one.
    """

    variants: tuple[Variant, ...] = ()
    prompts: tuple[tuple[Place, Prompt], ...] = ()
    references: Mapping[str, Any] | None = None
    compare: Mapping[str, Any] | None = None
    not_compared: str = ""
    report: Path | None = None

    @property
    def writes(self) -> bool:
        """Whether anything is written before the judging."""
        return bool(self.variants) or self.references is not None

    def writers(self) -> list[tuple[Place, Variant]]:
        """Everybody who writes, once for each table: who writes references, then a variant of each model."""
        from jurimetrics.variants.variant import Variant

        found: list[tuple[Place, Variant]] = []
        if self.references is not None:
            options = dict(self.references)
            model = options.pop("model")
            found.append((("references",), Variant("references", "{question}", model, **options)))
        models = len(self.variants) // len(self.prompts) if self.prompts else 0
        return [*found, *((("models", number), one) for number, one in enumerate(self.variants[:models]))]


@dataclass(frozen=True, slots=True)
class Scored:
    """Who and what the rest of the file names: needed to check [compare]."""

    metrics: Mapping[str, Metric]
    """By what the file calls them."""
    judges: tuple[Judge, ...]
    panel: Panel | None
    cascade: Cascade | None

    @property
    def names(self) -> list[str]:
        """Whose scores there will be, without what is computed."""
        together = self.cascade or self.panel
        return [*(judge.name for judge in self.judges), *([together.name] if together is not None else [])]

    @property
    def chosen(self) -> bool:
        """Whether one judge's scores stand for all: there is a panel, a cascade or one judge, or nothing is judged."""
        return self.panel is not None or self.cascade is not None or len(self.judges) == 1 or not self.judged

    @property
    def judged(self) -> bool:
        return any(metric.judged for metric in self.metrics.values())


def load_study(file: Path, table: ExperimentTable, scored: Scored) -> Study:
    """What the tables of a study ask for, checked as far as it can be without the records. Raises `InputError`."""
    prompts = _prompts(file, table.prompts or [])
    variants = _variants(file, table, prompts)
    compare, why = _compare(file, table.compare, variants, scored)
    study = Study(
        variants=variants,
        prompts=prompts,
        references=None if table.references is None else table.references.options(),
        compare=compare,
        not_compared=why,
        report=_report(file, table),
    )
    if study.references is not None:
        refusing(file, ("references",), study.writers)
    return study


# --- prompts ---


def _prompts(file: Path, tables: Sequence[PromptTable]) -> tuple[tuple[Place, Prompt], ...]:
    owners: dict[str, Place] = {}
    found: list[tuple[Place, Prompt]] = []
    for number, each in enumerate(tables):
        place = ("prompts", number)
        for prompt in _of_table(file, place, each):
            if prompt.name in owners:
                first = dotted(owners[prompt.name])
                raise fault(file, place, f'a prompt of {first} is called "{prompt.name}" too; expected other names')
            owners[prompt.name] = place
            found.append((place, prompt))
    return tuple(found)


def _of_table(file: Path, place: Place, table: PromptTable) -> Sequence[Prompt]:
    given = table.model_dump(exclude_unset=True)
    kinds = [key for key in ("file", "registered", "user") if key in given]
    if len(kinds) > 1:
        raise fault(file, (*place, kinds[1]), f"beside {kinds[0]}; {_KINDS}")
    if not kinds:
        # A name alone is a prompt that somebody began to write here.
        missing = (*place, "user") if {*given} & {*_WRITTEN_HERE} else place
        raise fault(file, missing, f"missing; {_KINDS}")
    if kinds == ["user"]:
        return [_written_here(file, place, given)]
    for key in given:
        if key in _WRITTEN_HERE:
            raise fault(file, (*place, key), f"belongs to a prompt that is written here, not to one of a {kinds[0]}")
    if table.registered is not None and "tag" in given:
        raise fault(file, (*place, "tag"), "chooses among the prompts of a file; beside registered there is one alone")
    return _loaded(file, (*place, kinds[0]), table)


def _written_here(file: Path, place: Place, given: dict[str, Any]) -> Prompt:
    from jurimetrics.prompts import Prompt

    if "name" not in given:
        raise fault(file, (*place, "name"), "missing; expected text, the name of the prompt")
    if "tag" in given:
        raise fault(file, (*place, "tag"), "chooses among the prompts of a file; expected tags for those of this one")
    try:
        return Prompt(**given)
    except InputError as error:
        key, _, words = str(error).partition(": ")
        raise fault(file, (*place, key), words) from None


def _loaded(file: Path, place: Place, table: PromptTable) -> Sequence[Prompt]:
    from jurimetrics.variants.library import load_prompts

    source: str | Path = table.registered or ""
    if table.registered is not None and not table.registered.startswith("prompts:/"):
        expected = 'expected an address such as "prompts:/brief@champion"'
        raise fault(file, place, f'{expected}, found "{table.registered}"')
    if table.file is not None:
        if table.file.startswith("prompts:/"):
            raise fault(file, place, f'expected a path; a prompt of MLflow goes by registered = "{table.file}"')
        source = file.parent / Path(table.file).expanduser()
        if not source.exists():
            there = "expected a path from the folder of this file"
            raise fault(file, place, f'no such file or folder: "{table.file}"; {there}')
    return refusing(file, place, lambda: load_prompts(source, tag=table.tag))  # type: ignore[no-any-return]


# --- variants ---


def _variants(file: Path, table: ExperimentTable, prompts: tuple[tuple[Place, Prompt], ...]) -> tuple[Variant, ...]:
    from jurimetrics.variants.variant import Variant

    if table.prompts is None and table.models is None:
        return ()
    if table.models is None:
        raise fault(file, "models", 'missing; [[prompts]] need one or more tables [[models]] with model = "..."')
    if table.prompts is None:
        raise fault(file, "prompts", "missing; [[models]] need one or more tables [[prompts]]: " + _KINDS)
    models = [_model(each) for each in table.models]
    texts = [prompt for _, prompt in prompts]
    names = [str(each["name"]) for each in models]
    for number, (model, name) in enumerate(zip(models, names, strict=True)):
        if name in names[:number]:
            first = names.index(name)
            raise fault(file, ("models", number), f'called "{name}" as models[{first}] is; expected a name of its own')
        # A value that cannot be used is that of a model, whatever the prompt.
        refusing(file, ("models", number), partial(Variant.grid, texts[:1], [model]))
    return tuple(refusing(file, "models", lambda: Variant.grid(texts, models)))


def _model(table: WriterTable) -> dict[str, Any]:
    """A model as `Variant.grid` takes it."""
    options = table.options()
    return {**options, "name": options.get("name") or options["model"]}


def refusing(file: object, place: Place | str, made: Callable[[], Any]) -> Any:
    """What `made` gives; what it refuses is said with its place in the file."""
    try:
        return made()
    except InputError as error:
        raise fault(file, place, _OF_VARIANT.sub("", str(error))) from None


# --- comparison and report ---


def _compare(
    file: Path, table: CompareTable | None, variants: Sequence[Variant], scored: Scored
) -> tuple[dict[str, Any] | None, str]:
    """The options of `compare`, None where nothing is compared, and why not where that needs a word."""
    if table is None:
        if len(variants) < 2:
            return None, ""
        if not scored.chosen:
            return None, 'several judges and no panel; [compare] with judge = "..." says whose scores to compare'
        return {}, ""
    names = [variant.name for variant in variants]
    if len(names) == 1:
        raise fault(file, "compare", f'one prompt and one model are one variant, "{names[0]}"; two or more are needed')
    if table.baseline is not None and names and table.baseline not in names:
        raise fault(file, "compare.baseline", no_variant(table.baseline, names))
    options: dict[str, Any] = {"baseline": table.baseline, "judge": _judge(file, table.judge, scored)}
    options |= {"level": table.level, "primary": None, "detect": None}
    if table.primary is not None:
        options["primary"] = [
            _metric(file, ("compare", "primary", number), name, scored) for number, name in enumerate(table.primary)
        ]
    for name, difference in table.detect.items():
        place = ("compare", "detect", name)
        metric = _metric(file, place, name, scored)
        if not difference > 0:
            raise fault(file, place, f"expected a number above 0, found {difference:g}")
        options["detect"] = {**(options["detect"] or {}), metric: difference}
    return options, ""


def no_variant(name: str, names: Sequence[str]) -> str:
    """What is said of a name that no variant has.

    >>> no_variant("shrt/m", ["short/m", "long/m"])
    'no variant "shrt/m"; did you mean "short/m"?'
    """
    shown = list(names)[:_LONGEST_LIST]
    more = f" and {len(names) - len(shown)} more" if len(names) > len(shown) else ""
    said = meant(name, names)
    return f'no variant "{name}"' + (said if "known:" not in said else meant(name, shown) + more)


def _metric(file: Path, place: Place, name: str, scored: Scored) -> str:
    if name not in scored.metrics:
        raise fault(file, place, f'no metric "{name}" is used' + meant(name, scored.metrics))
    return scored.metrics[name].name


def _judge(file: Path, name: str | None, scored: Scored) -> str | None:
    names = scored.names
    if name is None:
        if scored.chosen:
            return None
        known = ", ".join(f'"{each}"' for each in names)
        raise fault(file, "compare.judge", f"missing; without a panel one of the judges is expected: {known}")
    if name not in names:
        raise fault(file, "compare.judge", f'no judge "{name}"' + meant(name, names))
    if not scored.judged:
        raise fault(file, "compare.judge", "nothing is judged, every metric is computed here; expected no such key")
    return name


def _report(file: Path, table: ExperimentTable) -> Path | None:
    if table.report is None:
        return None
    path = file.parent / Path(table.report.file).expanduser()
    if path.suffix.lower() not in (".html", ".htm"):
        raise fault(file, "report.file", f'expected a file that ends in .html, found "{table.report.file}"')
    if path.is_dir():
        raise fault(file, "report.file", f'"{table.report.file}" is a folder; expected a file that ends in .html')
    return path
