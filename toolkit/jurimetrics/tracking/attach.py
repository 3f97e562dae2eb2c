"""A JSON file and tags added to a run that MLflow has already."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from jurimetrics.errors import InputError
from jurimetrics.tracking.quiet import quiet_mlflow
from jurimetrics.tracking.store import find_store, open_store, patiently


def attach_json(run_id: str, path: str, value: Mapping[str, Any], tags: Mapping[str, str]) -> None:
    """Add `value` as the artifact `path` and set `tags` of the run, in the store that `log_run` writes to.

    The state of the run stays as it is. Raises `InputError` that names the address where there is no such run, or MLflow
    cannot be reached or refuses.
    """
    store = find_store()
    with quiet_mlflow():
        from mlflow.exceptions import MlflowException

        try:
            client = open_store(store)
            patiently(client.get_run, run_id)
            patiently(client.log_text, run_id, json.dumps(value, ensure_ascii=False, indent=2), path)
            for name, text in tags.items():
                patiently(client.set_tag, run_id, name, text)
        except MlflowException as error:
            first = (str(error).strip().splitlines() or ["no reason given"])[0]
            raise InputError(f"MLflow at {store}: {first}") from error
