"""The `facts` table: what tells this node from others, at start, hourly, and when a file says that
something changed.

A process of its own collects them (`collect.py`). Should it hang, it is left behind, the stage it
hung in becomes a gap, and another one collects the rest.
"""

import functools
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from necroscope.errors import NecroscopeError, SourceUnavailable
from necroscope.model.child import AbandonedChildren, Start, start_process
from necroscope.model.names import clean
from necroscope.model.reading import Moment, Reading, Row, Source
from necroscope.model.units import NS_PER_S
from necroscope.sources.background import Background
from necroscope.sources.facts.collector import EXECUTABLES, FactsCollector, command

FACT_LIMIT: Final = 30_000
# A stage that says nothing for this long hangs; hashing, which sleeps most of the time, is given
# longer.
HANG_NS: Final = 60 * NS_PER_S
_HASH_HANG_NS: Final = 900 * NS_PER_S
_WATCH_NS: Final = 60 * NS_PER_S
_WATCHED: Final = (
    "var/lib/dpkg/status",
    "var/lib/rpm/rpmdb.sqlite",
    "usr/lib/sysimage/rpm/rpmdb.sqlite",
    "var/lib/rpm/Packages",
    "lib/apk/db/installed",
    "etc/systemd/system",
    "etc/systemd/system/multi-user.target.wants",
    "run/cloud-init/instance-data.json",
)
# There are thousands of them and they change together: each segment holds their count and hash,
# each hour all of them.
_BULKY: Final = "package"
_PACKAGES_NS: Final = 3_000 * NS_PER_S
_HASH_LIMIT: Final = 1_000
_OWN_TROUBLE: Final = "own: "
_OWN_KINDS: Final = ("own", "job_environment")
_END_S: Final = 1.0

Key = tuple[str, str]


class Facts(Source):
    """A row for each fact that changed; all of them at the start of a segment, packages hourly."""

    name = "facts"
    tables: tuple[str, ...] = ("facts",)

    def __init__(
        self,
        root: Path,
        every_ns: int,
        labels: Mapping[str, str] | None = None,
        *,
        is_metadata_asked: bool = False,
        own: Path | None = None,
        make: Callable[[list[str], dict[str, str]], FactsCollector] | None = None,
        start: Start = start_process,
    ) -> None:
        self._root = root
        self._every_ns = every_ns
        self._is_metadata_asked = is_metadata_asked
        self._own = own
        self._make = make or functools.partial(FactsCollector, start=start)
        self._facts: dict[Key, str] = {
            ("label", clean(name)): clean(value) for name, value in (labels or {}).items()
        }
        self._labels = set(self._facts)
        self._hashes: dict[str, str] = {}
        self._collector: FactsCollector | None = None
        self._abandoned = AbandonedChildren()
        self._seen: set[Key] = set()
        self._stage = ""
        self._heard_ns = 0
        self._next_ns = 0
        self._skip: set[str] = set()
        self._troubles: list[str] = []
        self._trouble: NecroscopeError | None = None
        self._watch: Background[dict[str, int]] = Background("facts")
        self._watched: dict[str, int] | None = None
        self._next_watch_ns = 0
        self._is_rewritten = True
        self._packages_ns: int | None = None

    def start_segment(self) -> None:
        """The next read writes every fact, so that the segment explains itself."""
        self._is_rewritten = True
        self.idle_until_ns = 0

    def read(self, now: Moment) -> Reading:
        self._abandoned.reap()
        self._look_for_changes(now)
        if self._collector is None and now.monotonic_ns >= self._next_ns:
            self._start(now)
        rows = self._collect(now)
        if self._is_rewritten:
            self._is_rewritten = False
            rows = [row for row in rows if row[1] == _BULKY or row[3] is None]
            rows += [
                (now.time_ns, *key, value) for key, value in self._facts.items() if key[0] != _BULKY
            ]
        is_busy = self._collector is not None or len(self._abandoned) or not self._watch.is_idle
        self.idle_until_ns = 0 if is_busy else min(self._next_ns, self._next_watch_ns)
        return Reading(
            {"facts": rows} if rows else {}, trouble=self._trouble or self._watch.trouble
        )

    def close(self) -> None:
        if self._collector is not None:
            self._abandoned.leave(self._collector)
        self._abandoned.end(_END_S)
        self._watch.close()

    def _look_for_changes(self, now: Moment) -> None:
        """File systems may hang, so their time stamps are looked at in a thread."""
        found = self._watch.take()
        if found is not None:
            if self._watched is not None and found != self._watched:
                self._next_ns = now.monotonic_ns
            self._watched = found
        if self._watch.is_idle and now.monotonic_ns >= self._next_watch_ns:
            self._next_watch_ns = now.monotonic_ns + _WATCH_NS
            self._watch.start(lambda: _changed_ns(self._root))

    def _start(self, now: Moment) -> None:
        arguments = command(
            self._root, self._skip, is_metadata_asked=self._is_metadata_asked, own=self._own
        )
        try:
            self._collector = self._make(arguments, self._hashes)
        except OSError as error:
            self._trouble = SourceUnavailable(
                f"cannot start the process that collects facts: {error.strerror}"
            )
            self._next_ns = now.monotonic_ns + self._every_ns
            return
        self._stage, self._heard_ns = "start", now.monotonic_ns
        self._seen, self._troubles = (
            set(self._labels),
            [f"{stage} hung" for stage in sorted(self._skip)],
        )
        self._next_ns = now.monotonic_ns + self._every_ns

    def _collect(self, now: Moment) -> list[Row]:
        collector = self._collector
        if collector is None:
            return []
        lines = collector.lines()
        rows = [row for line in lines for row in self._take(line, now)]
        if lines:
            self._heard_ns = now.monotonic_ns
        if collector.has_ended:
            rows += self._forget("executable", now) if self._stage == EXECUTABLES else []
            self._leave(collector)
        elif now.monotonic_ns - self._heard_ns > (
            _HASH_HANG_NS if self._stage == EXECUTABLES else HANG_NS
        ):
            self._skip = self._skip | {self._stage}
            self._trouble = SourceUnavailable(f"collecting facts hung in {self._stage}")
            self._next_ns = now.monotonic_ns
            self._leave(collector)
        return rows

    def _take(self, line: list[str], now: Moment) -> list[Row]:
        what, *words = line
        if what == "fact" and len(words) == 3:
            return self._take_fact((words[0], words[1]), words[2], now)
        if what == "stage":
            self._stage = words[0]
        elif what == "hash" and len(self._hashes) < _HASH_LIMIT:
            self._hashes[words[0]] = words[1]
        elif what == "trouble":
            self._troubles.append(f"{words[0]}: {words[1]}")
        elif what == "end":
            return self._complete(now)
        return []

    def _take_fact(self, key: Key, value: str, now: Moment) -> list[Row]:
        self._seen.add(key)
        if self._facts.get(key) == value or (
            key not in self._facts and len(self._facts) >= FACT_LIMIT
        ):
            return []
        self._facts[key] = value
        return [(now.time_ns, *key, value)]

    def _complete(self, now: Moment) -> list[Row]:
        """All but hashes have come: a fact that was not reported again is gone, unless a collector
        failed.
        """
        self._trouble = SourceUnavailable("; ".join(self._troubles)) if self._troubles else None
        self._skip = set()
        rows: list[Row] = []
        if all(trouble.startswith(_OWN_TROUBLE) for trouble in self._troubles):
            # A command of the operator's that always fails must not keep what is gone elsewhere.
            kept = {"executable", *(_OWN_KINDS if self._troubles else ())}
            for kind in {kind for kind, _ in self._facts} - kept:
                rows += self._forget(kind, now)
        if self._packages_ns is None or now.monotonic_ns - self._packages_ns >= _PACKAGES_NS:
            if self._packages_ns is not None:
                rows += [
                    (now.time_ns, *key, value)
                    for key, value in self._facts.items()
                    if key[0] == _BULKY
                ]
            self._packages_ns = now.monotonic_ns
        return rows

    def _forget(self, kind: str, now: Moment) -> list[Row]:
        """Facts of this kind that were not reported again."""
        gone = [key for key in self._facts if key[0] == kind and key not in self._seen]
        for key in gone:
            del self._facts[key]
        return [(now.time_ns, *key, None) for key in gone]

    def _leave(self, collector: FactsCollector) -> None:
        self._collector = None
        self._abandoned.leave(collector)


def _changed_ns(root: Path) -> dict[str, int]:
    found = {}
    for name in _WATCHED:
        try:
            found[name] = os.stat(root / name).st_mtime_ns
        except OSError:
            continue
    return found
