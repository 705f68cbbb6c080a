"""A bundle that is looked at, in a process of its own with limits on memory, CPU time and waiting:
a node that was taken over can put anything into its evidence.

Questions and answers are bytes, a JSON head and a body: nothing that comes back is unpickled.
"""

import asyncio
import contextlib
import json
import multiprocessing
import os
import resource
import signal
import struct
import tempfile
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Final, NamedTuple

import pyarrow as pa

from necroscope.errors import CorruptData, NecroscopeError
from necroscope.fleet.opened_bundle import open_bundle
from necroscope.store.query import Store
from necroscope.views.web.app import ServedRecording, recording_app

# All that are open at once fit into the pod of the collector.
_DATA_LIMIT_BYTES: Final = 512 << 20
_CPU_S: Final = 20
_OPENING_S: Final = 60.0
_QUESTION_S: Final = 30.0
_ANSWER_BYTES: Final = 64 << 20
_DEATH_S: Final = 1.0
_BUNDLE: Final = "bundle"
_HEAD: Final = struct.Struct("<I")

RecordingOf = Callable[[Store], ServedRecording]


class EvidenceLostError(NecroscopeError):
    """Its process ended, or took too long and was ended."""


class Answer(NamedTuple):
    status: int
    headers: list[tuple[str, str]]
    body: bytes


class EvidenceChild:
    """The time machine over one bundle. One question at a time; every wait has a limit."""

    def __init__(self, recording_of: RecordingOf, content: bytes) -> None:
        """CorruptData if it is not evidence; EvidenceLostError if the process ended over it."""
        self._directory = tempfile.TemporaryDirectory(prefix="necroscope-evidence-")
        Path(self._directory.name, _BUNDLE).write_bytes(content)
        # Arrow's own allocator reserves a gigabyte at once, which counts against the limit.
        os.environ.update(ARROW_DEFAULT_MEMORY_POOL="system", OPENBLAS_NUM_THREADS="1")
        # The parent has threads, so a fork could hang.
        context = multiprocessing.get_context("spawn")
        self._pipe, theirs = context.Pipe()
        self._process = context.Process(
            target=_serve, args=(recording_of, self._directory.name, theirs), daemon=True
        )
        try:
            self._process.start()
            theirs.close()
            refused = self._receive(_OPENING_S)
            if refused:
                raise CorruptData(refused.decode("utf-8", "replace"))
        except BaseException:
            self.close()
            raise

    def ask(self, path: str, query: bytes) -> Answer:
        question = {"path": path, "query": query.decode("latin-1")}
        try:
            self._pipe.send_bytes(json.dumps(question).encode())
        except OSError:
            raise self._too_expensive() from None
        answer = self._receive(_QUESTION_S)
        (head_bytes,) = _HEAD.unpack_from(answer)
        head = json.loads(answer[_HEAD.size : _HEAD.size + head_bytes])
        headers = [(str(name), str(value)) for name, value in head["headers"]]
        return Answer(int(head["status"]), headers, answer[_HEAD.size + head_bytes :])

    def close(self) -> None:
        if self._process.pid is not None:
            self._process.kill()
            self._process.join(_DEATH_S)
        self._pipe.close()
        self._directory.cleanup()

    def _receive(self, seconds: float) -> bytes:
        try:
            if self._pipe.poll(seconds):
                return self._pipe.recv_bytes(_ANSWER_BYTES)
        except (OSError, EOFError):
            pass
        raise self._too_expensive()

    def _too_expensive(self) -> EvidenceLostError:
        return EvidenceLostError(
            "this evidence takes more memory or time than evidence may",
            "ask for less of it; the incident itself is in the list",
        )


def _serve(recording_of: RecordingOf, directory: str, pipe: Connection) -> None:
    """The child's life: open the bundle, say so, answer until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # Where memory runs out all the same, it is this process that goes.
    with contextlib.suppress(OSError):
        Path("/proc/self/oom_score_adj").write_text("1000", "ascii")
    threading.Thread(target=_end_with_parent, daemon=True).start()
    pa.set_cpu_count(1)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(resource.RLIMIT_DATA, (_DATA_LIMIT_BYTES, hard))
    _allow_cpu_time()
    tempfile.tempdir = directory
    place = Path(directory)
    try:
        store = open_bundle((place / _BUNDLE).read_bytes(), place / "recording")
        app = recording_app(recording_of(store))
    except NecroscopeError as error:
        pipe.send_bytes(error.facts.encode())
        return
    except MemoryError:
        os._exit(1)
    pipe.send_bytes(b"")
    with asyncio.Runner() as runner:
        while True:
            question = json.loads(pipe.recv_bytes())
            _allow_cpu_time()
            try:
                pipe.send_bytes(runner.run(_answer(app, question)))
            except MemoryError:
                os._exit(1)


def _allow_cpu_time() -> None:
    used = resource.getrusage(resource.RUSAGE_SELF)
    _, hard = resource.getrlimit(resource.RLIMIT_CPU)
    resource.setrlimit(resource.RLIMIT_CPU, (int(used.ru_utime + used.ru_stime) + _CPU_S, hard))


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
        os._exit(1)


async def _answer(app: Any, question: dict[str, str]) -> bytes:
    started: dict[str, Any] = {}
    body = bytearray()

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: dict[str, Any]) -> None:
        if message["type"] == "http.response.start":
            started.update(message)
        else:
            body.extend(message.get("body", b""))

    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "GET",
        "scheme": "http",
        "path": question["path"],
        "root_path": "",
        "query_string": question["query"].encode("latin-1"),
        "headers": [],
    }
    await app(scope, receive, send)
    headers = [[n.decode("latin-1"), v.decode("latin-1")] for n, v in started["headers"]]
    head = json.dumps({"status": started["status"], "headers": headers}).encode()
    return _HEAD.pack(len(head)) + head + bytes(body)
