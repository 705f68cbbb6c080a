"""`necroscope fleet serve` as a process of its own, and nodes that push to it until they are told to stop
that it is stored.
"""

import contextlib
import http.client
import re
import signal
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.fleet_batches import CLUSTER, made_batch

from necroscope.fleet.protocol import BATCHES_PATH, encode
from necroscope.fleet.tokens import Grant, entry_text

TOKEN = "necro_test"
_SERVE = [sys.executable, "-m", "necroscope", "fleet", "serve"]
_ADDRESS = re.compile(r"the collector is at (https?)://([^:]+):(\d+)")


class CollectorProcess:
    """Started when it serves. `log` grows as it speaks."""

    def __init__(
        self,
        lake: str,
        tokens: Path,
        *options: str,
        ca_file: Path | None = None,
        preexec: Callable[[], None] | None = None,
    ) -> None:
        if not tokens.exists():
            tokens.write_text(entry_text(TOKEN, Grant(CLUSTER, "push")), "utf-8")
        words = [
            *_SERVE,
            "--lake",
            lake,
            "--tokens",
            str(tokens),
            *(() if "--port" in options else ("--port", "0")),
            *options,
        ]
        self._process = subprocess.Popen(
            words, stderr=subprocess.PIPE, text=True, preexec_fn=preexec
        )
        self._context = ssl.create_default_context(cafile=ca_file) if ca_file else None
        self.log: list[str] = []
        self.port = self._read_port()
        self._reader = threading.Thread(target=self._read_log)
        self._reader.start()

    def _read_port(self) -> int:
        assert self._process.stderr is not None
        for line in self._process.stderr:
            self.log.append(line)
            if found := _ADDRESS.search(line):
                return int(found[3])
        raise AssertionError(f"the collector did not start: {self.log}")

    def _read_log(self) -> None:
        assert self._process.stderr is not None
        self.log.extend(self._process.stderr)

    def connect(self, timeout_s: float = 30) -> http.client.HTTPConnection:
        if self._context is not None:
            return http.client.HTTPSConnection(
                "localhost", self.port, timeout=timeout_s, context=self._context
            )
        return http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)

    def ask(
        self, method: str, path: str, body: bytes | None = None, token: str = TOKEN
    ) -> tuple[int, str]:
        with contextlib.closing(self.connect()) as connection:
            connection.request(method, path, body, {"Authorization": f"Bearer {token}"})
            response = connection.getresponse()
            return response.status, response.read().decode()

    def push(self, node: str, number: int) -> int:
        return self.ask("POST", BATCHES_PATH, encode(made_batch(node, number)))[0]

    def metric(self, name: str) -> float:
        text = self.ask("GET", "/metrics")[1]
        return float(
            next(
                line.split()[1]
                for line in text.splitlines()
                if line.startswith(f"necroscope_collector_{name} ")
            )
        )

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def terminate(self) -> int:
        return self._end(signal.SIGTERM)

    def tell_to_end(self) -> None:
        self._process.send_signal(signal.SIGTERM)

    def wait(self) -> int:
        code = self._process.wait(30)
        self._reader.join(10)
        assert self._process.stderr is not None
        self._process.stderr.close()
        return code

    def _end(self, number: signal.Signals) -> int:
        self._process.send_signal(number)
        return self.wait()


@contextlib.contextmanager
def collector(lake: str, tokens: Path, *options: str, **further: Any) -> Iterator[CollectorProcess]:
    process = CollectorProcess(lake, tokens, *options, **further)
    try:
        yield process
    finally:
        if process._process.returncode is None:
            process.terminate()
