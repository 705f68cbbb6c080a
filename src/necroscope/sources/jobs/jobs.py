"""The tables `job_members` and `job_progress`: new processes are looked at every few seconds, those
that are part of a job are followed each tick until they end.

Files that a user named are opened and read in a thread, variables of a process by the lookup
process: both may hang. All else is the kernel's own.
"""

import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Final, Protocol

from necroscope.errors import NecroscopeError, SourceUnavailable
from necroscope.model.event import WARNING
from necroscope.model.names import clean
from necroscope.model.reading import Alarm, Gap, Moment, Reading, Row, Source, Trouble
from necroscope.model.units import NS_PER_S, format_duration
from necroscope.sources.background import Background
from necroscope.sources.jobs.followed_member import FollowedMember, parse_address, tenant_of
from necroscope.sources.jobs.last_words import TAIL_BYTES, LastWords, last_words
from necroscope.sources.jobs.membership import VARIABLES, membership, waits_for_job
from necroscope.sources.jobs.newcomers import (
    Newcomer,
    Newcomers,
    in_turns,
    read_newcomer,
    real_user,
)
from necroscope.sources.jobs.ray_drivers import RayDriver, list_drivers, session_logs
from necroscope.sources.jobs.stall_watch import Stall, StallWatch
from necroscope.sources.kept_file import read_once
from necroscope.sources.service_event import service_event
from necroscope.symbols.messages import ProcessVariables
from necroscope.symbols.target_files import open_in_root, open_root

MEMBER_LIMIT: Final = 256
PROGRESS_LIMIT: Final = 64
# Each costs about 100 us, most of it in the lookup process.
ASKED_AT_ONCE: Final = 64
# A row waits this long for the words of a member that has ended.
_WORDS_NS: Final = 5 * NS_PER_S
# Clocks of files are coarse, and start times worked out.
_LOG_LATE_NS: Final = 5 * NS_PER_S
_GROUPS: Final = frozenset({"torch", "slurm", "mpi"})
_BY_SIGNAL: Final = 0x7F


# A descriptor of its log, what that said at the end, or the drivers of a raylet's session.
_Found = int | LastWords | None | list[RayDriver]


class VariablesReader(Protocol):
    def read_variables(
        self, pids: Sequence[int], names: Collection[str]
    ) -> list[ProcessVariables | None]: ...


class Jobs(Source):
    """`below` is a cgroup path: processes elsewhere are another node's. `root_of` opens the root
    directory of a process, which takes CAP_SYS_PTRACE.
    """

    name = "jobs"
    tables = ("job_members", "job_progress")

    def __init__(
        self,
        root: Path,
        every_ns: int,
        lookup: VariablesReader,
        below: str = "",
        boottime: Callable[[], int] = lambda: time.clock_gettime_ns(time.CLOCK_BOOTTIME),
        root_of: Callable[[int], int | None] | None = None,
    ) -> None:
        self._proc = root / "proc"
        self._every_ns = every_ns
        self._lookup = lookup
        self._below = below.rstrip("/")
        self._boottime = boottime
        self._root_of = root_of or (lambda pid: open_root(root, pid))
        self._next_ns = 0
        self._newcomers = Newcomers(self._proc)
        self._members: dict[int, FollowedMember] = {}
        self._ended: list[FollowedMember] = []
        self._unread: list[FollowedMember] = []
        self._stalls = StallWatch()
        self._is_rewritten = False
        self._refusal: NecroscopeError | None = None
        self._asked = self._refused = 0
        self._drivers: dict[int, RayDriver] = {}
        self._is_listing_due = False
        self._logs: Background[list[tuple[FollowedMember, _Found]]] = Background("jobs")

    def start_segment(self) -> None:
        """The next read writes every member, so that the segment explains itself."""
        self._is_rewritten = True
        self.idle_until_ns = 0

    def read(self, now: Moment) -> Reading:
        reading = Reading()
        self._take_logs()
        self._follow(now, reading)
        if now.monotonic_ns >= self._next_ns:
            self._next_ns = now.monotonic_ns + self._every_ns
            self._look(now, reading)
        self._write_ended(now, reading)
        for stall in self._stalls.stalls(now.time_ns):
            self._tell_stall(stall, now, reading)
        if self._is_rewritten:
            self._is_rewritten = False
            rows = [member.row(now.time_ns) for member in self._members.values()]
            reading.rows.setdefault("job_members", []).extend(rows)
        if self._logs.is_idle:
            self._start_logs()
        reading.parts = self._troubles()
        is_at_rest = self._logs.is_idle and not self._members and not self._ended
        self.idle_until_ns = self._next_ns if is_at_rest else 0
        return reading

    def _troubles(self) -> tuple[Trouble, ...]:
        found = []
        if self._refusal is not None:
            found.append(Trouble("job variables", ("job_members",), self._refusal))
        if len(self._members) > PROGRESS_LIMIT:
            facts = f"more than {PROGRESS_LIMIT} members of jobs: the others' work is not measured"
            found.append(Trouble("job progress", ("job_progress",), SourceUnavailable(facts)))
        return tuple(found)

    def finish(self, now: Moment) -> Reading:
        """Members that ended just now are written without waiting for their words."""
        reading = Reading()
        for member in self._ended:
            reading.rows.setdefault("job_members", []).append(member.row(now.time_ns))
        self._ended.clear()
        return reading

    def close(self) -> None:
        self._logs.close()
        for member in [*self._members.values(), *self._ended, *self._unread]:
            member.close()
            member.close_log()

    def _follow(self, now: Moment, reading: Reading) -> None:
        rows: list[Row] = []
        for member in list(self._members.values()):
            if member.has_ended():
                self._end(member, now, reading)
        members = in_turns(self._members.values(), lambda one: one.tenant, PROGRESS_LIMIT)
        for member in members:
            with contextlib.suppress(NecroscopeError):
                progress = member.progress(now.monotonic_ns)
                if progress is not None:
                    rows.append(progress.row(now.time_ns, member.member.job, member.pid))
                    if member.member.kind in _GROUPS:
                        work = progress.elapsed_ns, progress.cpu_ns
                        self._stalls.note(member.member.job, member.pid, now.time_ns, *work)
        if rows:
            reading.rows["job_progress"] = rows

    def _end(self, member: FollowedMember, now: Moment, reading: Reading) -> None:
        del self._members[member.pid]
        member.ended_ns, member.status = now.time_ns, member.take_status()
        member.close()
        self._stalls.forget(member.member.job, member.pid)
        self._ended.append(member)
        if member.status and (_is_of_all(member) or member.status & _BY_SIGNAL):
            reading.rows.setdefault("events", []).append(_death(member))
            kind = "job_member_died"
            reading.alarms.append(Alarm(kind, None, None, None, False, now.time_ns))

    def _look(self, now: Moment, reading: Reading) -> None:
        boot_ns = self._boottime()
        self._newcomers.look(boot_ns)
        self._is_listing_due = True
        asked = self._newcomers.take(ASKED_AT_ONCE) + self._new_drivers(now, boot_ns)
        pids = [one.pid for one in asked]
        told = self._lookup.read_variables(pids, VARIABLES) if asked else []
        for newcomer, variables in zip(asked, told, strict=True):
            if variables is not None:
                self._count_refusal(is_refused=variables.variables is None)
                started_ns = now.time_ns - (boot_ns - newcomer.started_ns)
                self._join(newcomer, variables, started_ns, now, reading)
        left = len(self._newcomers.waiting) + self._newcomers.unread
        if left > 2 * ASKED_AT_ONCE:
            cause = "more new processes than are looked at: the others wait"
            span = now.time_ns - self._every_ns, now.time_ns
            reading.gaps.append(Gap("job_members", *span, cause, lost=left))

    def _new_drivers(self, now: Moment, boot_ns: int) -> list[Newcomer]:
        """Processes that were looked at before they called `ray.init`."""
        found = []
        for pid, driver in list(self._drivers.items()):
            if pid in self._members:
                continue
            one = read_newcomer(self._proc, pid)
            started_ns = now.time_ns - (boot_ns - one.started_ns) if one is not None else 0
            if one is None or started_ns > driver.written_ns + _LOG_LATE_NS:
                del self._drivers[pid]
            else:
                found.append(one)
        return found

    def _join(
        self,
        newcomer: Newcomer,
        told: ProcessVariables,
        started_ns: int,
        now: Moment,
        reading: Reading,
    ) -> None:
        pid, uid = newcomer.pid, newcomer.uid
        driver = self._drivers.get(pid)
        found = driver.member if driver else membership(told.variables or {}, told.log)
        if found is None and waits_for_job(told.log):
            self._newcomers.postpone(newcomer)
        if found is None or not self._is_own(told.cgroup):
            return
        if len(self._members) >= MEMBER_LIMIT:
            cause = f"more than {MEMBER_LIMIT} members of jobs are not followed"
            reading.gaps.append(Gap("job_members", now.time_ns, now.time_ns, cause, lost=1))
            if not self._make_room(tenant_of(uid, told.cgroup)):
                return
        if self._is_others(found.job, uid):
            found = replace(found, job=f"{found.job} (uid {uid})")
        comm = clean(newcomer.stat.comm)
        member = FollowedMember(
            pid, comm, told.cgroup, started_ns, found, _cores(pid), told.log, uid=uid
        )
        routes = read_once(f"{self._proc}/{pid}/net/fib_trie") or b""
        member.address = parse_address(routes.decode("ascii", "replace"))
        if member.open(self._proc):
            self._members[pid] = member
            self._unread.append(member)
            reading.rows.setdefault("job_members", []).append(member.row(now.time_ns))

    def _is_others(self, job: str, uid: int) -> bool:
        """Whoever starts a process chooses its variables: a claim to be part of another user's job
        is a job of its own.
        """
        return any(m.member.job == job and m.uid != uid for m in self._members.values())

    def _make_room(self, tenant: str) -> bool:
        """The newest member of who has most is followed no more, unless that is the newcomer's own
        tenant: nobody takes all places.
        """
        counts = Counter(member.tenant for member in self._members.values())
        largest, most = counts.most_common(1)[0]
        if most <= counts[tenant] + 1:
            return False
        pid = next(pid for pid in reversed(self._members) if self._members[pid].tenant == largest)
        member = self._members.pop(pid)
        self._stalls.forget(member.member.job, pid)
        member.close()
        member.close_log()
        return True

    def _count_refusal(self, *, is_refused: bool) -> None:
        """Some processes refuse even root, and some end before they are read: where most are
        refused, rights are missing.
        """
        self._asked += 1
        self._refused += is_refused
        is_closed = self._refused > self._asked / 2
        self._refusal = (
            SourceUnavailable(
                "cannot read the variables of other users' processes",
                "run as root, or with CAP_SYS_PTRACE",
            )
            if is_closed
            else None
        )

    def _is_own(self, cgroup: str | None) -> bool:
        return not self._below or f"{cgroup or ''}/".startswith(f"{self._below}/")

    def _write_ended(self, now: Moment, reading: Reading) -> None:
        written = [
            member
            for member in self._ended
            if member.log < 0 or now.time_ns - (member.ended_ns or 0) >= _WORDS_NS
        ]
        for member in written:
            self._ended.remove(member)
            reading.rows.setdefault("job_members", []).append(member.row(now.time_ns))

    def _tell_stall(self, stall: Stall, now: Moment, reading: Reading) -> None:
        member = self._members.get(stall.first)
        if member is None:
            return
        rank = member.member.rank
        words = (
            f"{stall.job}: all {stall.members} members on this node stand still;"
            f" {_called(member)} stopped first, {format_duration(now.time_ns - stall.since_ns)} ago"
        )
        fields = {"job": stall.job, "rank": rank, "since_ns": stall.since_ns}
        row = service_event(now.time_ns, "job_stalled", words, dict(fields), WARNING, stall.first)
        reading.rows.setdefault("events", []).append(row)
        reading.alarms.append(Alarm("job_stalled", None, None, None, False, now.time_ns))

    def _start_logs(self) -> None:
        """Logs of new members to be opened, and of those that have ended to be read."""
        new, self._unread = self._unread, []
        ended = [member for member in self._ended if member.log >= 0]
        raylets = [one for one in self._members.values() if one.member.role == "raylet"]
        listed, self._is_listing_due = raylets if self._is_listing_due else [], False
        if new or ended or listed:
            root_of = self._root_of
            self._logs.start(lambda: list(_logs(root_of, new, ended, listed)))

    def _take_logs(self) -> None:
        for member, found in self._logs.take() or []:
            if isinstance(found, int):
                member.log = found
            elif isinstance(found, list):
                # A user's files say nothing about processes of others.
                own = [one for one in found if real_user(self._proc, one.pid) == member.uid]
                self._drivers |= {one.pid: one for one in own}
            else:
                member.words = found
                member.close_log()


def _logs(
    root_of: Callable[[int], int | None],
    new: Sequence[FollowedMember],
    ended: Sequence[FollowedMember],
    listed: Sequence[FollowedMember],
) -> Iterator[tuple[FollowedMember, _Found]]:
    """In the thread."""
    for member in new:
        descriptor = _open_log(root_of, member)
        if descriptor is not None:
            yield member, descriptor
    for member in ended:
        tail = b""
        with contextlib.suppress(OSError):
            size = os.fstat(member.log).st_size
            tail = os.pread(member.log, TAIL_BYTES, max(0, size - TAIL_BYTES))
        yield member, last_words(tail)
    for member in listed:
        yield member, _drivers_of(root_of, member)


def _drivers_of(root_of: Callable[[int], int | None], raylet: FollowedMember) -> _Found:
    logs, root = session_logs(raylet.log_path), root_of(raylet.pid)
    if root is None:
        return []
    try:
        return list_drivers(root, logs) if logs is not None else []
    finally:
        os.close(root)


def _open_log(root_of: Callable[[int], int | None], member: FollowedMember) -> int | None:
    try:
        root = root_of(member.pid)
    except OSError:
        return None
    if root is None or member.log_path is None:
        return None
    try:
        return open_in_root(root, os.fsencode(member.log_path))
    finally:
        os.close(root)


def _is_of_all(member: FollowedMember) -> bool:
    """Whether its failure is its job's: Ray ends workers all the time."""
    return member.member.kind in _GROUPS or member.member.role == "driver"


def _death(member: FollowedMember) -> Row:
    status = member.status or 0
    signal_number = status & _BY_SIGNAL
    how = f"signal {signal_number}" if signal_number else f"exit code {status >> 8}"
    words = f"{_called(member)} of {member.member.job} ended by {how}"
    fields = {"job": member.member.job, "rank": member.member.rank, "status": status}
    ended_ns = member.ended_ns or 0
    return service_event(ended_ns, "job_member_died", words, dict(fields), WARNING, member.pid)


def _called(member: FollowedMember) -> str:
    rank = member.member.rank
    name = f"{member.member.role} {rank}" if rank is not None else member.member.role
    return f"{name} ({member.comm}[{member.pid}])"


def _cores(pid: int) -> int | None:
    try:
        return len(os.sched_getaffinity(pid))
    except OSError:
        return None
