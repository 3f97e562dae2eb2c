"""Write `answers.jsonl`: every prompt's answer to every question, by the small model of the extra `[local]` on this machine.

    python experiments/two-prompts/make_answers.py

Nothing leaves the machine. It takes about five minutes on two processor cores.
"""

from __future__ import annotations

import json
from pathlib import Path

import jurimetrics as jm

HERE = Path(__file__).parent
MODEL = "smollm2-135m-instruct"
# Enough for two or three sentences. Where the model goes round in circles no limit would do.
SETTINGS = {"max_tokens": 160, "seed": 1, "price": 0, "max_concurrency": 1, "timeout": 300.0}


def main() -> None:
    # No store: answers are kept by address, and this server listens at another one each time.
    questions = jm.load_records(HERE / "questions.jsonl")
    prompts = jm.load_prompts(HERE / "prompts")
    with jm.local_server(name=MODEL) as url:
        variants = [jm.Variant(prompt.name, prompt, MODEL, base_url=url, **SETTINGS) for prompt in prompts]
        # The first request of a server is slow and no property of any prompt, so its answer is thrown away.
        jm.generate(questions[:1], variants[:1], store=None, progress=False)
        answers = jm.generate(questions, variants, store=None)
    lines = [json.dumps(_line(record), ensure_ascii=False) for record in answers]
    (HERE / "answers.jsonl").write_text("\n".join([*lines, ""]), encoding="utf-8")
    by = json.dumps(answers.written_by, ensure_ascii=False, indent=1)
    (HERE / "written_by.json").write_text(by + "\n", encoding="utf-8")
    print(answers, answers.totals(), sep="\n")  # noqa: T201 - what it is run for


def _line(record: jm.Record) -> dict[str, object]:
    """What is known of an answer, with seconds in as many digits as tell something."""
    known = {name: value for name, value in record.as_dict().items() if value not in (None, {}, "")}
    first = {"id": known.pop("id"), "variant": known.pop("variant"), **known.pop("metadata")}
    if known.pop("group") != record.id:
        raise SystemExit("the questions are expected to stand alone, each a group of its own")
    if record.answer_latency_s is not None:
        known["answer_latency_s"] = round(record.answer_latency_s, 2)
    return {**first, **known}


if __name__ == "__main__":
    main()
