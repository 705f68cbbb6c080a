"""Follows the ledger of a recording: what is new in it is announced through each channel until it
has arrived.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from necroscope.errors import CorruptData, NecroscopeError
from necroscope.fleet.backoff import Backoff
from necroscope.fleet.request import DeliveryError
from necroscope.model.units import NS_PER_S
from necroscope.outlets.notify.announcements import Announcements, News
from necroscope.outlets.notify.kubernetes import Kubernetes
from necroscope.outlets.notify.node_condition import NodeCondition
from necroscope.outlets.notify.outbox import Letter, Outbox
from necroscope.segment.checksum import read_checked, write_checked
from necroscope.verdicts.entry import IncidentState
from necroscope.verdicts.ledger import Ledger
from necroscope.verdicts.ledger_writer import is_kept

_LOOK_NS: Final = NS_PER_S


class Channel(Protocol):
    """A receiver. One that `hears_ends` also gets the end of what it heard of while it went on."""

    name: str
    hears_ends: bool

    def deliver(self, letter: Letter, now_ns: int) -> None:
        """DeliveryError unless it has arrived."""


Say = Callable[[str], None]


class Notifier:
    """Keeps a notebook on disk: after a restart nothing is announced twice or forgotten."""

    def __init__(
        self,
        ledger: Ledger,
        channels: Sequence[Channel],
        notebook: Path,
        say: Say,
        jitter: Callable[[], float],
        clear_after_ns: int,
    ) -> None:
        self._ledger = ledger
        self._announcements = Announcements()
        self._changed = list(ledger.entries.values())
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
        changed, self._changed = [*self._changed, *self._ledger.refresh()], []
        reached_ns = self._ledger.judged[1] if self._ledger.judged else None
        for entry, news in self._announcements.take(changed, reached_ns):
            verdict = entry.incident.verdict
            self._say(f"{entry.id} {entry.state}: {verdict.cause}: {verdict.title}")
            self._condition.note(entry.incident, (reached_ns or 0) - entry.incident.to_ns, now_ns)
            for channel in self._channels:
                if channel.hears_ends or news is not News.END:
                    self._outboxes[channel.name].put(entry, now_ns)
        self._announcements.forget(self._ledger.entries)
        self._note_open(now_ns)
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

    def _note_open(self, now_ns: int) -> None:
        """What goes on is now, as long as a process keeps the ledger."""
        going_on = [one for one in self._ledger.incidents() if one.state is IncidentState.OPEN]
        if going_on and is_kept(self._ledger.directory):
            for entry in going_on:
                self._condition.note(entry.incident, 0, now_ns)

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
            "announcements": self._announcements.as_json(),
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
        """A notebook that is damaged or of another version is replaced: at worst an incident is
        announced twice.
        """
        with suppress(FileNotFoundError):
            try:
                content = read_checked(self._notebook)
                self._announcements = Announcements.from_json(content["announcements"])
                self._condition.restore(content["condition"])
                for name in self._outboxes.keys() & content["outboxes"].keys():
                    self._outboxes[name] = Outbox.from_json(content["outboxes"][name], jitter)
            except (CorruptData, KeyError, TypeError, ValueError, AttributeError) as error:
                self._say(f"{self._notebook.name} is replaced: {error}")
