"""Sends what came since the last time to a collector, profiles and logs each at its own pace.

A signal that the collector does not take stays where it is and is tried again with the next turn,
up to `MOST_BEHIND_NS`; what is older is skipped and reported. So a collector without profiles still
gets logs, and one that is away for an hour costs no memory: the recording is the buffer.
"""

import io
from collections.abc import Callable
from typing import Final

from necroscope.errors import NecroscopeError
from necroscope.fleet.request import DeliveryError, Endpoint
from necroscope.interchange.writers.otlp import write_otlp
from necroscope.interchange.writers.window import WindowFacts
from necroscope.model.units import NS_PER_S, format_duration
from necroscope.outlets.otlp.log_records import log_message
from necroscope.store.query import Store
from necroscope.store.samples import read_samples
from necroscope.verdicts.entry import LedgerEntry
from necroscope.verdicts.ledger import Ledger

# OTLP/HTTP: https://opentelemetry.io/docs/specs/otlp/#otlphttp-request
PROFILES_PATH: Final = "/v1development/profiles"
LOGS_PATH: Final = "/v1/logs"
MOST_BEHIND_NS: Final = 600 * NS_PER_S
# A message of more time would pass the 4 MiB that collectors take by default on a busy node.
_LONGEST_NS: Final = 30 * NS_PER_S
_TAKEN: Final = range(200, 300)


class OtlpExporter:
    """`headers` are asked for with each request, so that a token can be replaced; `say` gets what a
    person should know, once per change.
    """

    def __init__(
        self,
        store: Store,
        endpoint: Endpoint,
        headers: Callable[[], dict[str, str]],
        from_ns: int,
        say: Callable[[str], None],
        *,
        profiles: bool = True,
    ) -> None:
        self._store, self._endpoint, self._say = store, endpoint, say
        self._headers, self._has_profiles = headers, profiles
        self._node = store.info().node
        self._ledger, self._from_ns = Ledger(store.catalog.directory), from_ns
        self._waiting: list[LedgerEntry] = []
        self._sent_ns = {PROFILES_PATH: from_ns, LOGS_PATH: from_ns}
        self._said: dict[str, str] = {}

    def turn(self, to_ns: int) -> bool:
        """Send all that was recorded before a moment; False if something was not taken."""
        changed = self._ledger.refresh()
        self._waiting += [entry for entry in changed if entry.incident.to_ns >= self._from_ns]
        is_taken = self._send(LOGS_PATH, to_ns, self._logs)
        if self._has_profiles:
            is_taken &= self._send(PROFILES_PATH, to_ns, self._profiles)
        return is_taken

    def _send(self, path: str, to_ns: int, made: Callable[[int, int], bytes]) -> bool:
        oldest_ns = to_ns - MOST_BEHIND_NS
        if self._sent_ns[path] < oldest_ns:
            skipped = format_duration(oldest_ns - self._sent_ns[path])
            self._report(path, f"{path}: {skipped} were not sent: the collector did not take them")
            self._sent_ns[path] = oldest_ns
        while self._sent_ns[path] < to_ns:
            from_ns = self._sent_ns[path]
            until_ns = min(to_ns, from_ns + _LONGEST_NS)
            try:
                body = made(from_ns, until_ns)
                if body:
                    self._post(path, body)
            except DeliveryError as error:
                self._report(path, f"{path}: {error.facts}; it is tried again")
                return False
            except NecroscopeError as error:
                self._report(path, f"{path}: {error.facts}")
            self._sent_ns[path] = until_ns
            if path == LOGS_PATH:
                self._waiting = []
        return True

    def _post(self, path: str, body: bytes) -> None:
        base = self._endpoint.path.rstrip("/")
        headers = {"Content-Type": "application/x-protobuf", **self._headers()}
        answer = self._endpoint.send("POST", headers, body, f"{base}{path}")
        answer.must_be(f"collector {self._endpoint.host}", *_TAKEN)
        if path in self._said:
            del self._said[path]
            self._say(f"{path}: sending again")

    def _report(self, path: str, text: str) -> None:
        if self._said.get(path) != text:
            self._said[path] = text
            self._say(text)

    def _profiles(self, from_ns: int, to_ns: int) -> bytes:
        found = read_samples(self._store, from_ns, to_ns)
        if not found.count:
            return b""
        out = io.BytesIO()
        facts = WindowFacts(self._node, from_ns, to_ns, left_out=tuple(found.left_out))
        write_otlp(found.tables, facts, out)
        return out.getvalue()

    def _logs(self, from_ns: int, to_ns: int) -> bytes:
        """Incidents go with the first message, whenever they were: a verdict comes later than what
        it is about.
        """
        events = self._store.rows("events", from_ns, to_ns).to_pylist()
        message = log_message(self._node, events, self._waiting)
        return b"" if message is None else message.SerializeToString(deterministic=True)
