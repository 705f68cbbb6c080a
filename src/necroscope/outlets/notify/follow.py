"""Follows a live recording: new pinned windows are judged, what is new is told through each channel
until it has arrived.
"""

import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from necroscope.errors import CorruptData, NecroscopeError
from necroscope.fleet.backoff import Backoff
from necroscope.fleet.request import DeliveryError
from necroscope.model.units import NS_PER_S
from necroscope.outlets.notify.judged import Judged, Judgement
from necroscope.outlets.notify.kubernetes import Kubernetes
from necroscope.outlets.notify.new_incidents import NewIncidents
from necroscope.outlets.notify.node_condition import NodeCondition
from necroscope.outlets.notify.outbox import Letter, Outbox
from necroscope.segment.checksum import read_checked, write_checked
from necroscope.segment.recording import Pin, read_pins

_LOOK_NS: Final = 5 * NS_PER_S
_JUDGE_NS: Final = 10 * NS_PER_S
# The analysis may take a twentieth of a core: a node in trouble needs its cores.
_REST: Final = 20
# At the first start what happened in the last minutes is news too.
_BACK_NS: Final = 600 * NS_PER_S


class Channel(Protocol):
    """Somebody to tell."""

    name: str

    def deliver(self, letter: Letter, now_ns: int) -> None:
        """DeliveryError unless it has arrived."""


Judge = Callable[[Path, int], Judgement]
Say = Callable[[str], None]


class Watch:
    """The judging half: which incidents are new. `say` is told, once, what keeps it from
    judging.
    """

    def __init__(
        self,
        directory: Path,
        judge: Judge,
        incidents: NewIncidents,
        say: Say,
        monotonic_ns: Callable[[], int] = time.monotonic_ns,
    ) -> None:
        self.incidents = incidents
        self._monotonic_ns = monotonic_ns
        self._directory = directory
        self._judge = judge
        self._say = say
        self._not_before_ns = 0
        self._said = ""

    def look(self, now_ns: int) -> list[Judged]:
        pins = self._pins()
        from_ns = self.incidents.from_ns(pins, now_ns)
        started_ns = self._monotonic_ns()
        if from_ns is None or started_ns < self._not_before_ns:
            return []
        try:
            new = self.incidents.news(self._judge(self._directory, from_ns), pins)
            self._said = ""
        except NecroscopeError as error:
            new = []
            if error.facts != self._said:
                self._said = error.facts
                self._say(error.facts)
        took_ns = self._monotonic_ns() - started_ns
        self._not_before_ns = started_ns + took_ns + max(_JUDGE_NS, _REST * took_ns)
        return new

    def _pins(self) -> list[Pin]:
        try:
            return read_pins(self._directory)
        except CorruptData:
            return []


class Follower:
    """The telling half, with a notebook on disk: after a restart nobody is told twice, and nobody
    is forgotten.
    """

    def __init__(
        self,
        watch: Watch,
        channels: Sequence[Channel],
        notebook: Path,
        say: Say,
        jitter: Callable[[], float],
        clear_after_ns: int,
    ) -> None:
        self._watch = watch
        self._channels = channels
        self._notebook = notebook
        self._say = say
        self._condition = NodeCondition(clear_after_ns)
        self._condition_backoff = Backoff(jitter)
        self._outboxes = {channel.name: Outbox(jitter) for channel in channels}
        self._restore(jitter)
        self._written = ""

    @property
    def undelivered(self) -> int:
        return sum(map(len, self._outboxes.values()))

    def turn(self, now_ns: int) -> int:
        """One look, one try of what is due; returns when to come again."""
        for incident in self._watch.look(now_ns):
            self._say(f"{incident.id}: {incident.cause}: {incident.title}")
            self._condition.note(incident)
            for outbox in self._outboxes.values():
                outbox.put(incident, now_ns)
        # Before anything is sent: should this end in between, a second try is better than none.
        self._save()
        for channel in self._channels:
            self._deliver(channel, self._outboxes[channel.name], now_ns)
            if isinstance(channel, Kubernetes):
                self._tell_condition(channel, now_ns)
        self._save()
        again = [
            due_ns for outbox in self._outboxes.values() if (due_ns := outbox.next_ns()) is not None
        ]
        return max(now_ns, min([now_ns + _LOOK_NS, *again]))

    def _deliver(self, channel: Channel, outbox: Outbox, now_ns: int) -> None:
        while (letter := outbox.due(now_ns)) is not None:
            try:
                channel.deliver(letter, now_ns)
            except DeliveryError as error:
                pause_s = outbox.failed(now_ns, error.wait_s)
                self._say(f"{error.facts}; tried again in {pause_s:.0f} s, {len(outbox)} to go")
            else:
                outbox.delivered(letter)
                self._save()

    def _tell_condition(self, kubernetes: Kubernetes, now_ns: int) -> None:
        if not self._condition_backoff.is_due(now_ns):
            return
        try:
            self._condition.tell(now_ns, kubernetes.set_condition)
            self._condition_backoff.succeeded()
        except DeliveryError as error:
            pause_s = self._condition_backoff.failed(now_ns, error.wait_s)
            self._say(f"{error.facts}; tried again in {pause_s:.0f} s")

    def _save(self) -> None:
        outboxes = {name: outbox.as_json() for name, outbox in self._outboxes.items()}
        content = {
            "incidents": self._watch.incidents.as_json(),
            "outboxes": outboxes,
            "condition": self._condition.as_json(),
        }
        if repr(content) != self._written:
            try:
                write_checked(self._notebook, content)
            except OSError as error:
                raise NecroscopeError(
                    f"cannot write {self._notebook}: {error.strerror}",
                    "name another file: --state F",
                ) from None
            self._written = repr(content)

    def _restore(self, jitter: Callable[[], float]) -> None:
        """A notebook that is damaged or of another version is begun anew: its worst is an incident
        told twice.
        """
        with suppress(FileNotFoundError):
            try:
                content = read_checked(self._notebook)
                self._watch.incidents = NewIncidents.from_json(content["incidents"])
                self._condition.restore(content["condition"])
                for name in self._outboxes.keys() & content["outboxes"].keys():
                    self._outboxes[name] = Outbox.from_json(content["outboxes"][name], jitter)
            except (CorruptData, KeyError, TypeError, ValueError, AttributeError) as error:
                self._say(f"{self._notebook.name} is begun anew: {error}")


def fresh_incidents(now_ns: int) -> NewIncidents:
    """For the first start."""
    return NewIncidents(now_ns - _BACK_NS)
