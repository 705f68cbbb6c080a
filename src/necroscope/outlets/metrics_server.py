"""The HTTP side of `necroscope metrics`: one scrape at a time; new incidents are analysed in a
process of their own.
"""

import resource
import socket
import sys
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Final

import click

from necroscope import __version__
from necroscope.errors import NecroscopeError, UsageError
from necroscope.model.names import clean
from necroscope.outlets.notify.follow import Watch
from necroscope.outlets.notify.judge import judge
from necroscope.outlets.notify.new_incidents import NewIncidents
from necroscope.outlets.recorder_cost import read_cost
from necroscope.segment.lock import LOCK_FILE
from necroscope.views.prometheus.exposition import CONTENT_TYPE, Counter, Gauge, Metric
from necroscope.views.prometheus.node_metrics import NodeMetrics

_LOOK_S: Final = 5.0
_POLL_S: Final = 1.0
# Whoever connects and says nothing must not keep the scraper out for long.
_SILENT_S: Final = 5.0
_INDEX: Final = b"necroscope: the metrics are at /metrics\n"


class MetricsServer(HTTPServer):
    """Answers GET /metrics and /healthz. One thread: two scrapes at once would only wait for the
    same rows.
    """

    allow_reuse_address = True

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
        self._with_verdicts = with_verdicts
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._recorder: tuple[int, float] | None = None
        self._own_cpu = Counter(
            "necroscope_metrics_cpu_seconds_total", "CPU time of this exporter and its analyses."
        )
        self._own_seconds = 0.0
        self._look_seconds = Gauge(
            "necroscope_metrics_read_seconds", "How long the last look at the recording took."
        )
        self._errors = Counter(
            "necroscope_metrics_errors_total", "Looks at the recording and analyses that failed."
        )

    def run(self) -> None:
        """Until interrupted."""
        if self._with_verdicts:
            threading.Thread(target=self._judge, daemon=True).start()
        try:
            self.serve_forever(_POLL_S)
        except KeyboardInterrupt:
            click.echo("", err=True)
        finally:
            self._stopping.set()

    def text(self) -> str:
        """What a scrape gets; while the recording cannot be read, the figures of before and an
        error counted.
        """
        started_s = time.perf_counter()
        with self._lock:
            try:
                self._metrics.look(time.time_ns())
            except NecroscopeError as error:
                self._failed(error)
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

    def _judge(self) -> None:
        watch = Watch(
            self._directory,
            judge,
            NewIncidents(time.time_ns()),
            lambda facts: self._failed(NecroscopeError(facts)),
        )
        while not self._stopping.wait(_LOOK_S):
            for one in watch.look(time.time_ns()):
                with self._lock:
                    self._metrics.verdicts.take(
                        one.cause, one.confidence, one.from_ns, one.to_ns, one.core
                    )

    def _failed(self, error: NecroscopeError) -> None:
        self._errors.add()
        click.echo(f"warning: {clean(error.facts, 500)}", err=True)

    def handle_error(self, request: object, client_address: object) -> None:  # noqa: ARG002 - as socketserver calls it
        """A scraper that hangs up is no error of ours; whatever else went wrong is said, and the
        next scrape is answered.
        """
        error = sys.exc_info()[1]
        if not isinstance(error, ConnectionError | TimeoutError):
            self._failed(NecroscopeError(f"internal error: {error!r}"))


class _Handler(BaseHTTPRequestHandler):
    timeout = _SILENT_S
    server_version = f"necroscope/{__version__}"
    sys_version = ""

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
