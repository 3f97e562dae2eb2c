"""What may stand in an experiment file: one model for each of its tables.

The description of a field says what is expected there; a fault quotes it, so it is worded to follow "expected".
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from jurimetrics.judges.panel import RULES

ABOVE_ZERO = "a whole number above 0"


def _whole(text: str = ABOVE_ZERO, least: int = 1) -> Any:
    return Field(default=None, ge=least, description=text)


def _text(text: str, default: Any = None) -> Any:
    return Field(default=default, min_length=1, description=text)


class Table(BaseModel):
    """A table of the file: unknown keys and other types than the declared ones are refused, nothing is converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, allow_inf_nan=False)


class DataTable(Table):
    """[data]: what is evaluated."""

    records: str = Field(min_length=1, description='the path of a file of records, such as "records.jsonl"')
    labels: str | None = _text('the path of a file of labels, such as "labels.csv"')
    selection: Literal["random", "probabilities", "by_label"] | None = Field(
        default=None,
        description='how the labelled records were chosen: "random", "probabilities" (a column of the labels) or "by_label"',
    )
    columns: dict[str, str] | None = Field(
        default=None, description='a table of field and column, such as { answer = "my_output" }'
    )


class BaselineTable(Table):
    """[[judges]] of kind "baseline"."""

    kind: Literal["baseline"]
    name: str | None = _text("text, the name in the results")


class ModelTable(Table):
    """What is said of a chat model, also as the whole of [references]: options of `ChatJudge`, which holds their defaults."""

    model: str = Field(min_length=1, description='text, the name of the model, such as "gpt-4.1-mini"')
    base_url: str | None = _text('text, an address such as "http://localhost:8000/v1"')
    family: str | None = _text("text, the family of the model")
    temperature: float | None = Field(default=None, ge=0, description="a number from 0")
    seed: int | None = Field(default=None, description="a whole number")
    max_tokens: int | None = _whole()
    max_input_tokens: int | None = _whole()
    timeout: float | None = Field(default=None, gt=0, description="a number of seconds above 0")
    api_key_env: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
        description='the name of an environment variable, such as "OPENAI_API_KEY"',
    )
    max_concurrency: int | None = _whole()
    price: Any = Field(
        default=None,
        description="0 (free) or [prompt, completion] or [prompt, completion, cached] in US dollars per million tokens",
    )
    price_as: str | None = _text("text, the name of a model whose price holds")
    requests_per_minute: float | None = Field(default=None, gt=0, description="a number above 0")
    tokens_per_minute: float | None = Field(default=None, gt=0, description="a number above 0")
    extra_headers: dict[str, str] | None = Field(default=None, description="a table of header and text")
    extra_body: dict[str, Any] | None = Field(default=None, description="a table of parameters to send")
    azure_endpoint: str | None = _text("text, the address of an Azure resource")
    api_version: str | None = _text("text, a version of the Azure API")

    def options(self) -> dict[str, Any]:
        """What was written in the file, as `ChatJudge` takes it."""
        given = self.model_dump(exclude_unset=True, exclude={"kind"})
        if isinstance(given.get("price"), list):
            given["price"] = tuple(given["price"])
        return given


class ChatTable(ModelTable):
    """[[judges]] of kind "chat"."""

    kind: Literal["chat"]
    name: str | None = _text("text, the name in the results")
    logprobs: bool | None = Field(default=None, description="true or false")


class WriterTable(ModelTable):
    """[[models]]: a model that writes answers."""

    name: str | None = _text("text, the name in the names of variants")


class PromptTable(Table):
    """[[prompts]]: prompts from files, one from MLflow's registry, or one that is written here."""

    file: str | None = _text('the path of a folder of prompts or of one, such as "prompts/" or "prompts/brief.md"')
    tag: str | None = _text("text, the tag that the prompts taken from there have")
    registered: str | None = _text('a prompt of MLflow\'s registry, such as "prompts:/brief@champion"')
    name: str | None = _text("text, the name of the prompt")
    user: str | None = _text("text, the user message with its places, such as {question}")
    system: str | None = _text("text, the system message")
    tags: list[str] | None = Field(default=None, description="a list of words")
    description: str | None = Field(default=None, description="text")
    variables: list[str] | None = Field(
        default=None, description='a list of the places in the text, such as ["question"]'
    )


class CompareTable(Table):
    """[compare]: how the variants are compared at the end; the defaults are those of `compare`."""

    baseline: str | None = Field(default=None, description="the name of a variant")
    primary: list[str] | None = Field(default=None, description='a list of metrics, such as ["faithfulness"]')
    judge: str | None = _text("the name of a judge, of the panel or of the cascade")
    detect: dict[str, float] = Field(
        default={}, description="a table of metric and difference, such as { faithfulness = 0.05 }"
    )
    level: float = Field(default=0.95, gt=0, lt=1, description="a number between 0 and 1")


class ReportTable(Table):
    """[report]: the results as one HTML file."""

    file: str = Field(min_length=1, description='the path of the file to write, such as "report.html"')


class EmbedderTable(Table):
    """[embedder]: who turns texts into vectors; of kind "endpoint" with the options of `EndpointEmbedder`."""

    kind: Literal["embedded", "endpoint"] = Field(description='"embedded" or "endpoint"')
    model: str | None = _text('text, the name of the model, such as "text-embedding-3-small"')
    name: str | None = _text("text, the name in the frame of calls")
    base_url: str | None = _text('text, an address such as "http://localhost:8000/v1"')
    dimensions: int | None = _whole()
    max_input_tokens: int | None = _whole()
    timeout: float | None = Field(default=None, gt=0, description="a number of seconds above 0")
    api_key_env: str | None = Field(
        default=None,
        pattern=r"^[A-Za-z_][A-Za-z0-9_]*$",
        description='the name of an environment variable, such as "OPENAI_API_KEY"',
    )
    max_concurrency: int | None = _whole()
    price: float | None = Field(default=None, ge=0, description="a number of US dollars per million tokens from 0")
    price_as: str | None = _text("text, the name of a model whose price holds")
    extra_headers: dict[str, str] | None = Field(default=None, description="a table of header and text")
    extra_body: dict[str, Any] | None = Field(default=None, description="a table of parameters to send")
    azure_endpoint: str | None = _text("text, the address of an Azure resource")
    api_version: str | None = _text("text, a version of the Azure API")

    def options(self) -> dict[str, Any]:
        """What was written in the file, as `EndpointEmbedder` takes it."""
        return self.model_dump(exclude_unset=True, exclude={"kind"})


class PanelTable(Table):
    """[panel]: one verdict of all judges."""

    rule: Literal[RULES] = Field(  # type: ignore[valid-type]
        default="median", description="one of " + ", ".join(RULES)
    )
    vote_on: Literal["verdicts", "scores"] = Field(default="verdicts", description='"verdicts" or "scores"')
    weights: dict[str, float] | None = Field(default=None, description="a table of judge and number above 0")
    quorum: int | None = _whole()
    extractor: str | None = _text('the name of a judge, or "each"')
    name: str = _text("text, the name of the panel in the results", "panel")


class CascadeTable(Table):
    """[cascade]: judges from cheap to strong, of whom the next is asked only where the one before is not sure enough."""

    stages: list[str] = Field(
        min_length=1, description='a list of judges, or of judges and the panel, from cheap to strong: ["mini", "big"]'
    )
    thresholds: Any = Field(
        description='a list of numbers from 0 to 1 or "never", one for each stage (the last may go without), or a table of '
        "metric and such a list"
    )
    extractor: str | None = _text('the name of a judge, or "each"')
    name: str = _text("text, the name of the cascade in the results", "cascade")


class RubricTable(Table):
    """[[metrics.rubrics]]: a criterion of one's own."""

    name: str = Field(min_length=1, description="text, the name of the metric")
    text: str = Field(min_length=1, description="text, the criterion in a sentence or a few")
    scale: list[float] = Field(
        default=[1, 5], min_length=2, max_length=2, description="the lowest and the highest value, such as [1, 5]"
    )
    step: float | None = Field(default=None, description="1 or 0.1")
    levels: dict[str, str] | None = Field(
        default=None, description='a table of value and description, such as { 1 = "rude", 5 = "kind" }'
    )
    needs: list[str] | None = Field(default=None, description='a list of fields of the record, such as ["answer"]')
    uses: list[str] | None = Field(default=None, description='a list of fields of the record, such as ["question"]')
    threshold: float | None = Field(default=None, description="a number on the scale")
    higher_is_better: bool | None = Field(default=None, description="true or false")


class MetricsTable(Table):
    """[metrics]: what is measured."""

    use: list[str] = Field(default=[], description='a list of metrics or groups, such as ["rag", "f1"]')
    thresholds: dict[str, float] = Field(
        default={}, description="a table of metric and number, such as { faithfulness = 0.9 }"
    )
    options: dict[str, dict[str, str | int | float | bool]] = Field(
        default={}, description='a table of metric and options, such as { faithfulness = { refusals = "worst" } }'
    )
    rubrics: list[RubricTable] = Field(default=[], description="one or more tables [[metrics.rubrics]]")


class RunTable(Table):
    """[run]: how it is evaluated; the defaults are those of `evaluate`."""

    budget_usd: float | None = Field(default=None, gt=0, description="a number of US dollars above 0")
    budget_tokens: int | None = _whole()
    budget_calls: int | None = _whole()
    store: str = _text('the path of a file, "auto" (the project\'s own) or "none" (kept in memory only)', "auto")
    concurrency: int | None = _whole()
    retries: int | None = _whole("a whole number from 0", 0)
    retry_failed: bool | None = Field(default=None, description="true or false")
    repeats: int | None = _whole()
    reason_language: str | None = _text('a language in words, such as "German"')
    out: str = _text("the path of a folder for the results", "results")

    def options(self) -> dict[str, Any]:
        """What was written in the file and `evaluate` takes under the same name."""
        names = {"concurrency", "retries", "retry_failed", "repeats", "reason_language"}
        return self.model_dump(exclude_unset=True, include=names)

    def budget(self) -> dict[str, float] | None:
        """The budget as `evaluate` takes it; None where there is none."""
        limits = {"usd": self.budget_usd, "tokens": self.budget_tokens, "calls": self.budget_calls}
        return {unit: limit for unit, limit in limits.items() if limit is not None} or None


class MlflowTable(Table):
    """[mlflow]: what is logged."""

    experiment: str | None = _text("text, the name of the MLflow experiment")
    log: bool = Field(default=True, description="true or false")
    traces: int = Field(default=1000, ge=0, description="a whole number of records from 0")


class ExperimentTable(Table):
    """The whole file."""

    name: str | None = _text("text, the name of the study")
    description: str = Field(default="", description="text")
    data: DataTable = Field(description='a table [data] with records = "..."')
    judges: list[Annotated[BaselineTable | ChatTable, Field(discriminator="kind")]] = Field(
        min_length=1, description='one or more tables [[judges]] with kind = "baseline" or "chat"'
    )
    embedder: EmbedderTable | None = Field(default=None, description='a table [embedder] with kind = "endpoint"')
    panel: PanelTable | None = Field(default=None, description="a table [panel]")
    cascade: CascadeTable | None = Field(default=None, description="a table [cascade] with stages and thresholds")
    metrics: MetricsTable = Field(description='a table [metrics] with use = ["..."]')
    prompts: list[PromptTable] | None = Field(
        default=None, min_length=1, description='one or more tables [[prompts]] with file = "...", or name and user'
    )
    models: list[WriterTable] | None = Field(
        default=None, min_length=1, description='one or more tables [[models]] with model = "..."'
    )
    references: ModelTable | None = Field(default=None, description='a table [references] with model = "..."')
    compare: CompareTable | None = Field(default=None, description="a table [compare]")
    report: ReportTable | None = Field(default=None, description='a table [report] with file = "report.html"')
    run: RunTable = Field(default=RunTable(), description="a table [run]")
    mlflow: MlflowTable = Field(default=MlflowTable(), description="a table [mlflow]")


TABLES: dict[tuple[str, ...], tuple[type[Table], ...]] = {
    (): (ExperimentTable,),
    ("data",): (DataTable,),
    ("judges",): (BaselineTable, ChatTable),
    ("embedder",): (EmbedderTable,),
    ("panel",): (PanelTable,),
    ("metrics",): (MetricsTable,),
    ("metrics", "rubrics"): (RubricTable,),
    ("run",): (RunTable,),
    ("mlflow",): (MlflowTable,),
    # Where a key belongs that several tables have, the more common of them, which comes first here, is named.
    ("cascade",): (CascadeTable,),
    ("prompts",): (PromptTable,),
    ("models",): (WriterTable,),
    ("references",): (ModelTable,),
    ("compare",): (CompareTable,),
    ("report",): (ReportTable,),
}
"""The tables by where they stand; of the judges one for each kind."""

KINDS = ("baseline", "chat")
SEVERAL = ("judges", "rubrics", "prompts", "models")
"""Tables of which there may be several, written in two brackets."""
ENDPOINTS = ("judges", "embedder", "models", "references")
"""Tables that say who is asked where, and have many keys in common."""
