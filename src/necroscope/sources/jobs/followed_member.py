"""A process that is part of a job, followed from the moment it is found until it is gone: what it
gets done, and how it ended (include/uapi/linux/pidfd.h, fs/proc/array.c).

A process that is not our child leaves its exit status in two places. Its pidfd has it once the
parent has taken it (PIDFD_GET_INFO, Linux 6.15). Before that, while it is a zombie, its `stat` has
it for who may trace it; others read 0 there, so only another number counts.
"""

import contextlib
import fcntl
import os
import select
import struct
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Final, NamedTuple

from necroscope.model.reading import Row
from necroscope.model.units import NS_PER_S
from necroscope.sources.jobs.last_words import LastWords
from necroscope.sources.jobs.membership import Membership
from necroscope.sources.kept_file import KeptFile
from necroscope.sources.procfs.blocked_tasks import CloseReader

_TICK_NS: Final = NS_PER_S // os.sysconf("SC_CLK_TCK")
_PIDFD_INFO: Final = struct.Struct("<QQ11Ii")
_PIDFD_GET_INFO: Final = 3 << 30 | _PIDFD_INFO.size << 16 | 0xFF << 8 | 11
_INFO_EXIT: Final = 1 << 3


class ProcessStat(NamedTuple):
    """Of /proc/PID/stat, which proc(5) counts from 1."""

    comm: bytes
    state: str
    parent: int
    is_kernel_thread: bool
    cpu_ns: int
    started_ticks: int
    core: int
    exit_status: int


def parse_stat(data: bytes) -> ProcessStat:
    """ValueError or IndexError if it is none; a name may hold spaces and brackets."""
    end = data.rindex(b")")
    fields = data[end + 2 :].split()
    return ProcessStat(
        comm=data[data.index(b"(") + 1 : end],
        state=chr(fields[0][0]),
        parent=int(fields[1]),
        is_kernel_thread=bool(int(fields[6]) & 0x00200000),  # PF_KTHREAD
        cpu_ns=(int(fields[11]) + int(fields[12])) * _TICK_NS,
        started_ticks=int(fields[19]),
        core=int(fields[36]),
        exit_status=int(fields[49]),
    )


class MemberProgress(NamedTuple):
    """Since the look before."""

    state: str
    core: int
    elapsed_ns: int
    cpu_ns: int
    delay_ns: int | None

    def row(self, time_ns: int, job: str, pid: int) -> Row:
        figures = self.elapsed_ns, self.cpu_ns, self.delay_ns
        return (time_ns, job, pid, self.core, self.state, *figures)


@dataclass(slots=True)
class FollowedMember:
    """`log` is a descriptor of the file behind its standard error, -1 if that is not a regular
    file. `submitted` is what a driver of Ray is part of by the name that its submission was given.
    """

    pid: int
    comm: str
    cgroup: str | None
    started_ns: int
    member: Membership
    cores: int | None
    log_path: str | None = None
    address: str | None = None
    log: int = -1
    ended_ns: int | None = None
    status: int | None = None
    words: LastWords | None = None
    uid: int = 0
    started_ticks: int = 0
    submitted: Membership | None = None
    _pidfd: int = -1
    _files: tuple[KeptFile, KeptFile] | None = None
    _before: tuple[int, int, int | None] | None = None

    @property
    def tenant(self) -> str:
        return tenant_of(self.uid, self.cgroup)

    @property
    def is_open(self) -> bool:
        return self._pidfd >= 0

    def open(self, proc: Path) -> bool:
        """False if it is gone already, or there are no descriptors left."""
        try:
            self._pidfd = os.pidfd_open(self.pid)
        except (OSError, AttributeError):
            return False
        folder = proc / str(self.pid)
        self._files = KeptFile(folder / "stat"), KeptFile(folder / "schedstat")
        return True

    def has_ended(self) -> bool:
        """A process is gone when it is a zombie: its threads have ended, its parent may be late."""
        return bool(select.select([self._pidfd], [], [], 0)[0])

    def progress(self, monotonic_ns: int) -> MemberProgress | None:
        """None at the first look. NecroscopeError if it is gone."""
        assert self._files is not None
        stat = self._files[0].parse(parse_stat, record=True)
        delay_ns = self._files[1].parse(_delay, record=True)
        before, self._before = self._before, (monotonic_ns, stat.cpu_ns, delay_ns)
        if before is None:
            return None
        delayed_ns = None
        if delay_ns is not None and before[2] is not None:
            delayed_ns = max(0, delay_ns - before[2])
        worked_ns = max(0, stat.cpu_ns - before[1])
        return MemberProgress(
            stat.state, stat.core, monotonic_ns - before[0], worked_ns, delayed_ns
        )

    def ask_status(self, read_closely: CloseReader) -> None:
        """How it ended, as wait(2) tells it. It stays open while that is not known and may be
        later: of a zombie whose parent has not asked yet.
        """
        answer = bytearray(_PIDFD_INFO.pack(_INFO_EXIT, *[0] * 13))
        is_later = True
        try:
            fcntl.ioctl(self._pidfd, _PIDFD_GET_INFO, answer, True)
        except OSError:
            is_later = False
        mask, *_, status = _PIDFD_INFO.unpack(answer)
        has_status = is_later and mask & _INFO_EXIT
        self.status = status if has_status else self._zombie_status(read_closely)
        if self.status is not None or not is_later:
            self.close()

    def _zombie_status(self, read_closely: CloseReader) -> int | None:
        """Its number may be another's by now, the moment of its start may not."""
        try:
            stat = parse_stat(read_closely(self.pid, "stat"))
        except (OSError, ValueError, IndexError):
            return None
        is_own = stat.started_ticks == self.started_ticks and stat.state in "ZX"
        return (stat.exit_status or None) if is_own else None

    def close(self) -> None:
        """Gives back all but its log."""
        if self._pidfd >= 0:
            os.close(self._pidfd)
            self._pidfd = -1
        for file in self._files or ():
            file.close()

    def close_log(self) -> None:
        if self.log >= 0:
            with contextlib.suppress(OSError):
                os.close(self.log)
            self.log = -1

    def rows(self, time_ns: int) -> list[Row]:
        """One for each name of its job."""
        names = [self.member] if self.submitted is None else [self.member, self.submitted]
        return [self._row(time_ns, member) for member in names]

    def _row(self, time_ns: int, member: Membership) -> Row:
        words = self.words
        numbers = member.rank, member.world_size, member.attempt
        process = self.pid, self.comm, self.cgroup, self.started_ns
        held = member.leader, self.address, self.cores, member.gpus
        said = (None, None) if words is None else tuple(words)
        end = self.ended_ns, self.status, *said
        return (time_ns, member.job, member.kind, member.role, *numbers, *process, *held, *end)


def tenant_of(uid: int, cgroup: str | None) -> str:
    """Whose places a member takes: a user's, of root's containers each its own."""
    return f"uid {uid}" if uid else cgroup or ""


def parse_address(fib_trie: str) -> str | None:
    """The first of a network's own addresses that is not the loopback's (net/ipv4/fib_trie.c):

    |-- 10.77.0.2
       /32 host LOCAL
    """
    lines = fib_trie.splitlines()
    for above, line in pairwise(lines):
        address = above.partition("|-- ")[2].strip()
        if line.strip() == "/32 host LOCAL" and address and not address.startswith("127."):
            return address
    return None


def _delay(data: bytes) -> int | None:
    """Without CONFIG_SCHED_INFO the file holds zeros, or is not there."""
    return int(data.split()[1])
