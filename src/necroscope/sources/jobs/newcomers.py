"""Processes that were not looked at yet, and whose turn it is: users take turns, so that a storm of
one user's processes does not keep others waiting (proc(5)).
"""

import os
import random
from collections import Counter, deque
from collections.abc import Callable, Hashable, Iterable
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from necroscope.errors import SourceUnavailable
from necroscope.model.units import NS_PER_S
from necroscope.sources.jobs.followed_member import ProcessStat, parse_stat
from necroscope.sources.kept_file import read_once

# Files of /proc that are read at a look: some ten microseconds each.
READ_AT_ONCE: Final = 500
# More than these are not remembered: one user's many processes are met again, and give way to
# others'.
MOST_WAITING: Final = 2_048
# Of those that were looked at too early, this many are looked at again each time.
AGAIN_AT_ONCE: Final = 16
_MOST_POSTPONED: Final = 256
_MOST_POSTPONED_OF_USER: Final = 64
# A process that was just forked still has its parent's variables.
_SETTLED_NS: Final = 2 * NS_PER_S
# A script that waits for something and then becomes the program itself (`exec`) does so early in
# its life. Until then some are read again at each look: for a new name they are newcomers again.
_YOUNG_NS: Final = 600 * NS_PER_S
REREAD_AT_ONCE: Final = 32
_MOST_YOUNG: Final = 512
_CLOCK_TICKS: Final = os.sysconf("SC_CLK_TCK")

Item = TypeVar("Item")


class Newcomer(NamedTuple):
    pid: int
    uid: int
    stat: ProcessStat

    @property
    def started_ns(self) -> int:
        """Since the machine was started."""
        return since_boot_ns(self.stat)


class Newcomers:
    """`waiting` are those that were read, and have not had their turn."""

    def __init__(self, proc: Path, chosen: random.Random | None = None) -> None:
        self.waiting: dict[int, Newcomer] = {}
        self.unread = 0
        self._proc = proc
        # Names in /proc that need no look, those of other files among them.
        self._known: set[str] = set()
        self._postponed: deque[Newcomer] = deque()
        # Of those that had their turn.
        self._young: deque[Newcomer] = deque(maxlen=_MOST_YOUNG)
        self._random = chosen or random.Random()

    def look(self, boot_ns: int) -> None:
        """Which processes came and went. Where very many came, some of them by lot: nobody can
        choose to be in front. One that has not settled is met again at the next look, if it is
        still there: most are not.
        """
        try:
            names = set(os.listdir(self._proc))
        except OSError as error:
            raise SourceUnavailable(f"cannot list {self._proc}: {error.strerror}") from None
        self._known &= names
        self._postponed = deque(one for one in self._postponed if str(one.pid) in names)
        self.waiting = {pid: one for pid, one in self.waiting.items() if str(pid) in names}
        strange = names - self._known
        self._known |= {name for name in strange if not name.isdecimal()}
        fresh = {int(name) for name in strange if name.isdecimal()} - self.waiting.keys()
        self.unread = max(0, len(fresh) - READ_AT_ONCE)
        for pid in self._random.sample(sorted(fresh), READ_AT_ONCE) if self.unread else fresh:
            self._read(pid, boot_ns)
        for _ in range(min(REREAD_AT_ONCE, len(self._young))):
            self._reread(self._young.popleft(), boot_ns)
        if len(self.waiting) > MOST_WAITING:
            self.unread += len(self.waiting) - MOST_WAITING
            self.waiting = {one.pid: one for one in self._in_line(MOST_WAITING)}

    def take(self, most: int) -> list[Newcomer]:
        """At most this many: users in turns, of each the oldest first, which have most of their
        life behind them. Then some of those that were postponed.
        """
        taken = self._in_line(most)
        for one in taken:
            self.waiting.pop(one.pid)
            self._known.add(str(one.pid))
        self._young.extend(taken)
        again = [self._postponed.popleft() for _ in range(min(AGAIN_AT_ONCE, len(self._postponed)))]
        return taken + again

    def postpone(self, one: Newcomer) -> None:
        """It may be part of a job later; a user who has many such processes takes no other's
        place.
        """
        of_user = Counter(each.uid for each in self._postponed)[one.uid]
        if len(self._postponed) < _MOST_POSTPONED and of_user < _MOST_POSTPONED_OF_USER:
            self._postponed.append(one)

    def ask_again(self, one: Newcomer) -> None:
        """What it is was not answered: it comes again, with those that were postponed or as new."""
        waiting = len(self._postponed)
        self.postpone(one)
        if len(self._postponed) == waiting:
            self._known.discard(str(one.pid))

    def _in_line(self, most: int) -> list[Newcomer]:
        oldest_first = sorted(self.waiting.values(), key=lambda one: one.stat.started_ticks)
        return in_turns(oldest_first, lambda one: one.uid, most)

    def _read(self, pid: int, boot_ns: int) -> None:
        stat = _read_stat(self._proc, pid)
        if stat is None:
            self._known.add(str(pid))
        elif boot_ns - since_boot_ns(stat) >= _SETTLED_NS:
            self.waiting[pid] = Newcomer(pid, real_user(self._proc, pid), stat)

    def _reread(self, one: Newcomer, boot_ns: int) -> None:
        stat = _read_stat(self._proc, one.pid)
        if stat is None:
            return
        if (stat.started_ticks, stat.comm) != (one.stat.started_ticks, one.stat.comm):
            self._read(one.pid, boot_ns)
        elif boot_ns - one.started_ns < _YOUNG_NS:
            self._young.append(one)


def read_newcomer(proc: Path, pid: int) -> Newcomer | None:
    """None if it is gone, or a thread of the kernel."""
    stat = _read_stat(proc, pid)
    return None if stat is None else Newcomer(pid, real_user(proc, pid), stat)


def _read_stat(proc: Path, pid: int) -> ProcessStat | None:
    try:
        stat = parse_stat(read_once(f"{proc}/{pid}/stat") or b"")
    except (ValueError, IndexError):
        return None
    return None if stat.is_kernel_thread or stat.state in "ZX" else stat


def since_boot_ns(stat: ProcessStat) -> int:
    """When it was started, as CLOCK_BOOTTIME counts."""
    return stat.started_ticks * NS_PER_S // _CLOCK_TICKS


def in_turns(items: Iterable[Item], owner: Callable[[Item], Hashable], most: int) -> list[Item]:
    """One of each owner's, then a second of each, and so on: of one owner in the order given."""
    queues: dict[Hashable, list[Item]] = {}
    for item in items:
        queues.setdefault(owner(item), []).append(item)
    ranked = [(place, item) for queue in queues.values() for place, item in enumerate(queue)]
    ranked.sort(key=lambda pair: pair[0])
    return [item for _, item in ranked[:most]]


def real_user(proc: Path, pid: int) -> int:
    """Of `Uid:` in /proc/PID/status: the files of a process that hides itself (PR_SET_DUMPABLE)
    belong to root. 0 if it is gone.
    """
    _, found, rest = (read_once(f"{proc}/{pid}/status") or b"").partition(b"\nUid:\t")
    first = rest.split(None, 1)[:1]
    return int(first[0]) if found and first and first[0].isdigit() else 0
