"""A node whose token was stolen, and a reader who opens what it sent: for `scripts/bench fleet push
--hostile`.

In turns and without a pause it sends batches that are no batches (garbage, deep JSON, a gzip bomb)
and bundles that lie: one whose footer ends Arrow's Python, one that inflates to 60 MB, garbage. The
reader asks for the report of each bundle that was taken.
"""

import gzip
import http.client
import itertools
import threading
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pyarrow as pa

from necroscope.fleet.protocol import BATCHES_PATH, BUNDLES_PATH, NODE_HEADER
from necroscope.fleet.tokens import Grant, entry_text

_CLUSTER: Final = "bench"
_NODE: Final = "stolen"
_PUSH, _READ = "necro_stolen", "necro_reader"
_LIES: Final = Path(__file__).parents[1] / "tests/data/hostile"
TOKENS: Final = entry_text(_PUSH, Grant(_CLUSTER, "push", _NODE)) + entry_text(
    _READ, Grant(_CLUSTER, "read")
)


def _zstd(content: bytes) -> bytes:
    packed: bytes = pa.compress(content, codec="zstd", asbytes=True)
    return packed


class HostileNode:
    """`statuses` are the collector's answers, by what was asked."""

    def __init__(self, port: int) -> None:
        self.statuses: Counter[str] = Counter()
        self._port = port
        self._bundles = [
            _zstd((_LIES / "aborts_arrow.tar").read_bytes()),
            _zstd(bytes(60_000_000)),
            _zstd(b"garbage" * 1000),
        ]
        self._batches = [
            b"garbage",
            gzip.compress(b"[" * 200_000),
            gzip.compress(bytes(1 << 28), 9),
        ]
        self._over = threading.Event()
        targets = (self._push, self._read, self._read)
        self._threads = [threading.Thread(target=self._repeat, args=(one,)) for one in targets]

    def __enter__(self) -> "HostileNode":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        for thread in self._threads:
            thread.join()

    def _repeat(self, ask: Callable[[http.client.HTTPConnection, int], None]) -> None:
        for number in itertools.count():
            if self._over.is_set():
                return
            connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
            try:
                ask(connection, number)
            except (OSError, http.client.HTTPException) as error:
                self.statuses[type(error).__name__] += 1
            finally:
                connection.close()

    def _push(self, connection: http.client.HTTPConnection, number: int) -> None:
        headers = {"Authorization": f"Bearer {_PUSH}", NODE_HEADER: _NODE}
        body = self._bundles[number % len(self._bundles)]
        connection.request("PUT", f"{BUNDLES_PATH}lie{number % 30}", body, headers)
        self._note("bundle", connection)
        gzipped = headers | {"Content-Encoding": "gzip"}
        body = self._batches[number % len(self._batches)]
        connection.request("POST", BATCHES_PATH, body, gzipped)
        self._note("batch", connection)

    def _read(self, connection: http.client.HTTPConnection, number: int) -> None:
        day = time.strftime("%Y-%m-%d", time.gmtime())
        path = f"/evidence/{_CLUSTER}/{day}/{_NODE}--lie{number % 30}.bundle/api/report"
        connection.request("GET", path, headers={"Authorization": f"Bearer {_READ}"})
        self._note("evidence", connection)

    def _note(self, what: str, connection: http.client.HTTPConnection) -> None:
        response = connection.getresponse()
        response.read()
        self.statuses[f"{what} {response.status}"] += 1
