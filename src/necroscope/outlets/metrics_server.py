"""The HTTP side of `necroscope metrics`: a few connections at a time, none of which can hold up the
others by sending slowly.
"""

import contextlib
import resource
import socket
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Final

import click

from necroscope import __version__
from necroscope.errors import NecroscopeError, UsageError
from necroscope.model.names import clean
from necroscope.outlets.recorder_cost import read_cost
from necroscope.segment.lock import LOCK_FILE, is_recorded
from necroscope.verdicts.ledger import Ledger
from necroscope.views.prometheus.exposition import CONTENT_TYPE, Counter, Gauge, Metric
from necroscope.views.prometheus.node_metrics import NodeMetrics

_POLL_S: Final = 1.0
# A client that says nothing, or a byte now and then, must not keep the scraper out.
_SILENT_S: Final = 5.0
_HEAD_S: Final = 5.0
_MOST_CONNECTIONS: Final = 8
_INDEX: Final = b"necroscope: the metrics are at /metrics\n"


class MetricsServer(ThreadingHTTPServer):
    """Answers GET /metrics and /healthz. Two scrapes at once wait for each other: they would read
    the same rows.
    """

    allow_reuse_address = True
    daemon_threads = True

    def __init__(
        self,
        address: tuple[str, int],
        metrics: NodeMetrics,
        directory: Path,
        *,
        with_verdicts: bool,
    ) -> None:
        self.address_family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        try:
            super().__init__(address, _Handler)
        except OSError as error:
            facts = f"cannot listen on {address[0]} port {address[1]}: {error.strerror}"
            raise UsageError(facts, "choose another --listen HOST:PORT") from None
        self._metrics = metrics
        self._directory = directory
        self._ledger = Ledger.open(directory) if with_verdicts else None
        if self._ledger is not None:
            metrics.verdicts.leave_out(self._ledger.entries.values())
        self._lock = threading.Lock()
        self._free = threading.BoundedSemaphore(_MOST_CONNECTIONS)
        self._recorder: tuple[int, float] | None = None
        self._own_cpu = Counter(
            "necroscope_metrics_cpu_seconds_total", "CPU time of this exporter."
        )
        self._own_seconds = 0.0
        self._look_seconds = Gauge(
            "necroscope_metrics_read_seconds", "How long the last look at the recording took."
        )
        self._errors = Counter(
            "necroscope_metrics_errors_total", "Looks at the recording that failed."
        )

    def run(self) -> None:
        """Until interrupted."""
        try:
            self.serve_forever(_POLL_S)
        except KeyboardInterrupt:
            click.echo("", err=True)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Beyond a few at a time a connection is closed at once."""
        if self._free.acquire(blocking=False):
            super().process_request(request, client_address)
        else:
            self.shutdown_request(request)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self._free.release()

    def text(self) -> str:
        """What a scrape gets; while the recording cannot be read, the figures of before and an
        error counted.
        """
        started_s = time.perf_counter()
        with self._lock:
            try:
                recorded = is_recorded(self._directory)
                self._metrics.look(time.time_ns(), is_recorded=recorded)
            except NecroscopeError as error:
                self._count_error(error)
            for entry in self._ledger.refresh() if self._ledger is not None else ():
                self._metrics.verdicts.take(entry)
            self._note_recorder()
            self._look_seconds.set(time.perf_counter() - started_s)
            return self._metrics.text(self._own())

    def _own(self) -> Iterator[Metric]:
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        seconds = sum(usage.ru_utime + usage.ru_stime for usage in used)
        self._own_cpu.add(seconds - self._own_seconds)
        self._own_seconds = seconds
        yield from (self._own_cpu, self._look_seconds, self._errors)

    def _note_recorder(self) -> None:
        """CPU time since the last scrape; of a recorder that was started since, all of its own."""
        cost = read_cost(self._directory / LOCK_FILE)
        if cost is None:
            return
        pid, before = self._recorder or (cost.pid, cost.cpu_seconds)
        before = before if pid == cost.pid else 0.0
        self._metrics.note_recorder(cost.cpu_seconds - before, cost.resident_bytes)
        # A child's time is missing for the moment between its end and its being reaped.
        self._recorder = cost.pid, max(cost.cpu_seconds, before)

    def _count_error(self, error: NecroscopeError) -> None:
        self._errors.add()
        click.echo(f"warning: {clean(error.facts, 500)}", err=True)

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002 - as socketserver calls it
        """A scraper that hangs up is not an error of ours; whatever else went wrong is said, and
        the next scrape is answered.
        """
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError | TimeoutError):
            self._count_error(NecroscopeError(f"internal error: {error!r}"))


class _Handler(BaseHTTPRequestHandler):
    timeout = _SILENT_S
    server_version = f"necroscope/{__version__}"
    sys_version = ""

    def setup(self) -> None:
        super().setup()
        self._deadline = threading.Timer(_HEAD_S, self._hang_up)
        self._deadline.daemon = True
        self._deadline.start()

    def parse_request(self) -> bool:
        """The head is there."""
        is_good = super().parse_request()
        self._deadline.cancel()
        return is_good

    def finish(self) -> None:
        self._deadline.cancel()
        super().finish()

    def _hang_up(self) -> None:
        with contextlib.suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def do_GET(self) -> None:
        path = self.path.partition("?")[0]
        if path == "/metrics":
            assert isinstance(self.server, MetricsServer)
            self._answer(200, CONTENT_TYPE, self.server.text().encode())
        elif path in ("/", "/healthz"):
            self._answer(200, "text/plain; charset=utf-8", _INDEX)
        else:
            self._answer(404, "text/plain; charset=utf-8", b"there is only /metrics\n")

    def _answer(self, status: int, content_type: str, body: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """A line for every scrape would fill a log for weeks."""
