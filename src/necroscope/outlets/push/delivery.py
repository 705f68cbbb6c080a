"""Sends what waits in the spool, oldest first: pauses when the collector is not there, goes on past
what it refuses.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from random import random
from typing import Any, Final

from necroscope.errors import CorruptData
from necroscope.fleet.backoff import Backoff
from necroscope.model.names import clean
from necroscope.model.units import NS_PER_S
from necroscope.outlets.push.clock import CollectorClock
from necroscope.outlets.push.push_state import PushState
from necroscope.outlets.push.sender import PushAnswer, PushOutcome, Sender
from necroscope.outlets.push.spool import BUNDLE, Entry

_DENIED_WAIT_S: Final = 60.0
_REPEAT_S: Final = 3600.0
_MOST_DEATHS: Final = 32


@dataclass(slots=True)
class DeliverySummary:
    """What a run sent, for its summary."""

    batches: int = 0
    bundles: int = 0
    refused: int = 0
    bytes: int = 0


class Delivery:
    """`tell` gets what an operator should know: that it does not work, now and then, and that it
    works again.
    """

    def __init__(
        self,
        state: PushState,
        sender: Sender,
        tell: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
        jitter: Callable[[], float] = random,
        clock_ns: Callable[[], int] = time.time_ns,
    ) -> None:
        self.delivered = DeliverySummary()
        self.last_answer: PushAnswer | None = None
        self._state = state
        self._sender = sender
        self.tell = tell
        self._clock = clock
        self._clock_ns = clock_ns
        self._collector_clock = CollectorClock()
        self._deaths: dict[str, int] = {}
        self._backoff = Backoff(jitter)
        self._reported_s: float | None = None
        self._refused_s: float | None = None

    @property
    def waiting(self) -> int:
        return len(self._state.spool.entries)

    @property
    def pause_s(self) -> float:
        """Until the next try."""
        return max(0.0, self._backoff.not_before_ns / NS_PER_S - self._clock())

    def send(self, most: int) -> bool:
        """At most this many; False if there is a reason to pause."""
        for _ in range(min(most, self.waiting)):
            if self.pause_s:
                return False
            entry = self._state.spool.entries[0]
            try:
                head, body = self._state.spool.read(entry)
            except CorruptData as error:
                self.tell(error.facts)
                self._state.drop([entry], "damaged in the spool of the node")
                continue
            self.last_answer = answer = self._sent(entry, head, body)
            if answer.outcome in (PushOutcome.LATER, PushOutcome.DENIED):
                self._pause(answer)
                return False
            self._done(entry, body, answer)
        return True

    def trouble(self, text: str) -> None:
        """Told when it begins, and now and then while it lasts."""
        if self._reported_s is None or self._clock() - self._reported_s >= _REPEAT_S:
            self._reported_s = self._clock()
            self.tell(text)

    def close(self) -> None:
        self._sender.close()

    def _sent(self, entry: Entry, head: dict[str, Any], body: bytes) -> PushAnswer:
        if entry.kind == BUNDLE:
            return self._sender.send_bundle(head["bundle"], head["node"], entry.from_ns, body)
        sent_ns = self._clock_ns()
        answer = self._sender.send_batch(body, sent_ns, self._collector_clock.header(sent_ns))
        if answer.outcome is PushOutcome.TAKEN:
            self._hear(answer.body, sent_ns, self._clock_ns())
        return answer

    def take_deaths(self) -> dict[str, int]:
        """Deaths of jobs on other nodes that the collector reported, by our clock."""
        found, self._deaths = self._deaths, {}
        return found

    def _hear(self, body: dict[str, Any], sent_ns: int, heard_ns: int) -> None:
        """What a collector says is believed as far as it can be true."""
        arrived_ns, answered_ns = body.get("arrived_ns"), body.get("answered_ns")
        if type(arrived_ns) is int and type(answered_ns) is int:
            self._collector_clock.note(sent_ns, arrived_ns, answered_ns, heard_ns)
        measured, deaths = self._collector_clock.measured, body.get("job_deaths")
        for death in deaths[:_MOST_DEATHS] if isinstance(deaths, list) else ():
            job = death.get("job") if isinstance(death, dict) else None
            at_ns = death.get("time_ns") if isinstance(death, dict) else None
            if isinstance(job, str) and type(at_ns) is int and measured is not None:
                self._deaths[clean(job)] = at_ns - measured.offset_ns

    def _pause(self, answer: PushAnswer) -> None:
        least_s = _DENIED_WAIT_S if answer.outcome is PushOutcome.DENIED else 0.0
        self._backoff.failed(round(self._clock() * NS_PER_S), max(answer.wait_s or 0.0, least_s))
        self.trouble(f"cannot push: {answer.text}; {self.waiting} wait in the spool, trying again")

    def _done(self, entry: Entry, body: bytes, answer: PushAnswer) -> None:
        self._backoff.succeeded()
        if self._reported_s is not None:
            self._reported_s = None
            self.tell("pushing again")
        if answer.outcome is PushOutcome.REFUSED:
            if self._refused_s is None or self._clock() - self._refused_s >= _REPEAT_S:
                self._refused_s = self._clock()
                self.tell(f"{answer.text}; it was put aside in {self._state.spool.refused}")
            self._state.refuse(entry, f"refused: {answer.text}")
            self.delivered.refused += 1
            return
        self._state.spool.remove(entry)
        self.delivered.bytes += len(body)
        if entry.kind == BUNDLE:
            self.delivered.bundles += 1
        else:
            self.delivered.batches += 1
