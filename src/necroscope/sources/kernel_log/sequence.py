"""One story of the log: the lines that belong together, gathered within bounds, and the one event
they become.
"""

import json
import re
from collections import Counter
from typing import Final

from necroscope.model.event import Event
from necroscope.model.names import clean
from necroscope.model.reading import Alarm
from necroscope.sources.kernel_log.line import LogLine
from necroscope.sources.kernel_log.pattern import COLUMNS, Pattern

TEXT_LIMIT: Final = 16 * 1024
# Storms print one line per packet and one per counter: the first of each kind are kept, the rest is
# counted.
SAME_LINES: Final = 24
TRACE_LINES: Final = 60
LIST_LIMIT: Final = 32
COUNTERS_LIMIT: Final = 64
ALARMS_LIMIT: Final = 8
_NUMBER: Final = re.compile(r"-?\d{1,18}", re.ASCII)
_COLUMN_LIMITS: Final = {"cpu": 2**15, "queue": 2**31, "pid": 2**31}
_OUTCOMES: Final = ("nic_reset_done", "nic_reset_failed")

Field = int | str | list[int | str] | dict[str, int]


class Sequence:
    """Lines of one story. The weightiest line says what the columns hold; what the others say of
    them goes into the fields.
    """

    def __init__(self, line: LogLine, pattern: Pattern) -> None:
        self.first = line
        self.last_ns = line.time_ns
        self.heard_ns = 0
        self.pattern = pattern
        self.kind = pattern.kind
        self._weight = -1
        self._severity = line.severity
        self._columns: dict[str, int | str] = {}
        self._set_by: dict[str, str] = {}
        self._last_queue: str | None = None
        self._last_caught: dict[str, tuple[str | None, ...]] = {}
        self._fields: dict[str, Field] = {}
        self._counters: dict[str, int] = {}
        self._counts: Counter[str] = Counter()
        self._kept: list[str] = []
        self._kept_bytes = 0
        self._alarmed: set[tuple[str, int | str | None, int | str | None]] = set()

    def add(self, line: LogLine, pattern: Pattern, match: re.Match[str]) -> Alarm | None:
        """Take in a line that a pattern matched; the alarm it raises, if it tells the recorder
        something new.
        """
        joins = bool(self._counts)
        self._keep(line, pattern.id, SAME_LINES)
        if self._last_caught.get(pattern.id) == match.groups():
            # A storm says the same of every packet.
            return None
        self._last_caught[pattern.id] = match.groups()
        caught = {name: text for name, text in match.groupdict().items() if text is not None}
        if "counter" in caught and "value" in caught:
            self._count(caught["counter"], caught["value"])
            return None
        if pattern.id == "ena.lost_tx_2":
            caught = self._unswap(caught)
        is_weightiest = pattern.weight > self._weight
        for name, text in caught.items():
            self._catch(name.partition("__")[0], text, pattern.id, is_weightiest)
        self._last_queue = caught.get("queue", self._last_queue)
        self._weigh(pattern, joins)
        return self._alarm(line, caught) if pattern.alarm else None

    def follow(self, line: LogLine) -> None:
        """Take in a line that belongs here by its place or its device, though no pattern knows
        it.
        """
        self._keep(line, "trace", TRACE_LINES)

    def event(self) -> Event:
        columns, fields = self._columns, dict(self._fields)
        if self._counters:
            fields["counters"] = self._counters
        total = self._counts.total()
        if total > 1:
            fields["line_counts"] = dict(self._counts)
        left_out = total - len(self._kept)
        lines = "\n".join(
            [*self._kept, *([f"[{left_out} more lines are left out]"] if left_out else [])]
        )
        cpu, device, queue, pid, comm = (columns.get(name) for name in COLUMNS)
        return Event(
            time_ns=self.first.time_ns,
            kind=self.kind,
            pattern=self.pattern.id,
            cpu=cpu if isinstance(cpu, int) else None,
            device=str(device)
            if device is not None
            else str(fields["bus"])
            if "bus" in fields
            else None,
            queue=queue if isinstance(queue, int) else None,
            pid=pid if isinstance(pid, int) else None,
            comm=str(comm) if comm is not None else None,
            severity=self._severity,
            by_kernel=self.first.by_kernel,
            sequence=self.first.sequence,
            message=self.first.text,
            lines=lines if total > 1 else None,
            fields=json.dumps(fields, separators=(",", ":")) if fields else None,
        )

    def _keep(self, line: LogLine, what: str, limit: int) -> None:
        self.last_ns = max(self.last_ns, line.time_ns)
        self._severity = min(self._severity, line.severity)
        self._counts[what] += 1
        size_bytes = len(line.text) + 1
        if self._counts[what] <= limit and self._kept_bytes + size_bytes <= TEXT_LIMIT:
            self._kept.append(line.text)
            self._kept_bytes += size_bytes

    def _count(self, counter: str, value: str) -> None:
        """Counters of single queues are too many; those of the device say which kind of reset it
        was.
        """
        if not counter.startswith("queue_") and len(self._counters) < COUNTERS_LIMIT:
            self._counters.setdefault(counter, int(value[:18]))

    def _unswap(self, caught: dict[str, str]) -> dict[str, str]:
        """ENA 2.17.0 prints (cpu, qid) as `qid: %d, napi CPU: %d`; the line before says which of
        the two is the queue.
        """
        if caught["queue"] != self._last_queue and caught["cpu"] == self._last_queue:
            return {**caught, "cpu": caught["queue"], "queue": caught["cpu"]}
        return caught

    def _catch(self, name: str, text: str, pattern_id: str, is_weightiest: bool) -> None:
        value = _value(name, text)
        if value is None or value == self._columns.get(name):
            return
        if name not in COLUMNS:
            if is_weightiest or name not in self._fields:
                self._fields[name] = value
        elif name not in self._columns:
            self._columns[name] = value
            self._set_by[name] = pattern_id
        elif is_weightiest:
            self._give_way(name)
            self._columns[name] = value
            self._set_by[name] = pattern_id
        else:
            self._catch_another(name, value, pattern_id)

    def _give_way(self, name: str) -> None:
        """A known column becomes a field. The core of another queue goes with its queue."""
        for other in (name, "cpu") if name == "queue" else (name,):
            if other in self._columns:
                self._fields.setdefault(
                    _field_name(self._set_by[other], other), self._columns.pop(other)
                )

    def _catch_another(self, name: str, value: int | str, pattern_id: str) -> None:
        """Another queue in the same kind of line makes a list; another kind of line means another
        thing by the same word.
        """
        if self._set_by[name] != pattern_id:
            self._fields.setdefault(_field_name(pattern_id, name), value)
            return
        values = self._fields.setdefault(f"{name}s", [self._columns[name]])
        if isinstance(values, list) and value not in values and len(values) < LIST_LIMIT:
            values.append(value)

    def _weigh(self, pattern: Pattern, joins: bool) -> None:
        if pattern.kind in _OUTCOMES:
            failed = pattern.kind == "nic_reset_failed" or self._fields.get("status", 0) != 0
            if failed or "outcome" not in self._fields:
                self._fields["outcome"] = "failed" if failed else "completed"
            # Alone it only says that a reset ended; with what led to it, it is the reset.
            if joins:
                self.kind, self._weight = "nic_reset", 9
        elif pattern.weight > self._weight:
            self.kind, self._weight = (
                ("nic_reset" if self.kind in _OUTCOMES and joins else pattern.kind),
                pattern.weight,
            )

    def _alarm(self, line: LogLine, caught: dict[str, str]) -> Alarm | None:
        """Of the core and queue that this line names, else of those that the story names."""
        own = {name: _value(name, caught[name]) for name in ("cpu", "queue") if name in caught}
        cpu, device, queue = (
            own.get(name) if name in own else self._columns.get(name)
            for name in ("cpu", "device", "queue")
        )
        news = (self.kind, cpu, queue)
        if news in self._alarmed or len(self._alarmed) >= ALARMS_LIMIT:
            return None
        self._alarmed.add(news)
        return Alarm(
            self.kind,
            cpu if isinstance(cpu, int) else None,
            str(device) if device is not None else None,
            queue if isinstance(queue, int) else None,
            line.by_kernel,
            line.time_ns,
        )


def _field_name(pattern_id: str, column: str) -> str:
    return f"{pattern_id.rpartition('.')[2]}_{column}"


def _value(name: str, text: str) -> int | str | None:
    """A number where it is one that fits its column; -1, which drivers print for `not known`, is
    None in a column.
    """
    if name in _COLUMN_LIMITS:
        number = int(text) if _NUMBER.fullmatch(text) else -1
        return number if 0 <= number < _COLUMN_LIMITS[name] else None
    if not name.endswith("_hex") and name not in COLUMNS and _NUMBER.fullmatch(text):
        return int(text)
    return clean(text.strip())
