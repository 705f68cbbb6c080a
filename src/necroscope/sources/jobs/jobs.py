"""The tables `job_members` and `job_progress`: new processes are looked at every few seconds, those
that are part of a job are followed each tick until they end.

Files that a user named are opened and read in a thread, variables of a process by the lookup
process: both may hang. All else is the kernel's own.
"""

import contextlib
import os
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from pathlib import Path
from typing import Final, Protocol

from necroscope.errors import NecroscopeError, SourceUnavailable
from necroscope.model.event import WARNING
from necroscope.model.names import clean
from necroscope.model.reading import Alarm, Gap, Moment, Reading, Row, Source, Trouble
from necroscope.model.units import NS_PER_S, format_duration
from necroscope.sources.background import Background
from necroscope.sources.jobs.followed_member import FollowedMember, parse_address, tenant_of
from necroscope.sources.jobs.member_logs import Found, RootOf, read_logs
from necroscope.sources.jobs.membership import VARIABLES, is_submission, membership, waits_for_job
from necroscope.sources.jobs.newcomers import (
    Newcomer,
    Newcomers,
    in_turns,
    read_newcomer,
    real_user,
)
from necroscope.sources.jobs.ray_drivers import RayDriver
from necroscope.sources.jobs.stall_watch import Stall, StallWatch
from necroscope.sources.kept_file import read_once
from necroscope.sources.procfs.blocked_tasks import CloseReader, file_reader
from necroscope.sources.service_event import service_event
from necroscope.symbols.messages import ProcessVariables
from necroscope.symbols.target_files import open_root

MEMBER_LIMIT: Final = 256
PROGRESS_LIMIT: Final = 64
# Each costs about 100 us, most of it in the lookup process.
ASKED_AT_ONCE: Final = 64
# A supervisor restarts a member at once, and in a crash loop it lives for seconds: this long after
# an end some newcomers are looked at each second.
_SUCCESSOR_NS: Final = 10 * NS_PER_S
ASKED_SOON: Final = 16
# A row waits this long for how a member ended, and for its words.
_END_KNOWN_NS: Final = 5 * NS_PER_S
# Clocks of files are coarse, and start times worked out.
_LOG_LATE_NS: Final = 5 * NS_PER_S
_GROUPS: Final = frozenset({"torch", "slurm", "mpi"})
_BY_SIGNAL: Final = 0x7F


class VariablesReader(Protocol):
    def read_variables(
        self, pids: Sequence[int], names: Collection[str]
    ) -> list[ProcessVariables | None]: ...


class Jobs(Source):
    """`below` is a cgroup path: processes elsewhere are another node's. `root_of` opens the root
    directory of a process, and `read_closely` reads its `stat`, both with CAP_SYS_PTRACE.
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
        root_of: RootOf | None = None,
        read_closely: CloseReader | None = None,
    ) -> None:
        self._proc = root / "proc"
        self._every_ns = every_ns
        self._lookup = lookup
        self._below = below.rstrip("/")
        self._boottime = boottime
        self._root_of = root_of or (lambda pid: open_root(root, pid))
        self._read_closely = read_closely or file_reader(root)
        self._next_ns = self._soon_until_ns = 0
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
        self._logs: Background[list[tuple[FollowedMember, Found]]] = Background("jobs")

    def start_segment(self) -> None:
        """The next read writes every member, so that the segment explains itself."""
        self._is_rewritten = True
        self.idle_until_ns = 0

    def read(self, now: Moment) -> Reading:
        reading = Reading()
        self._take_logs()
        self._follow(now, reading)
        if now.monotonic_ns >= self._next_ns:
            self._look(now, reading)
        self._write_ended(now, reading)
        for stall in self._stalls.stalls(now.time_ns):
            self._tell_stall(stall, now, reading)
        if self._is_rewritten:
            self._is_rewritten = False
            for member in self._members.values():
                _write(member, now, reading)
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
            _write(member, now, reading)
            member.close()
        self._ended.clear()
        return reading

    def close(self) -> None:
        self._logs.close()
        for member in [*self._members.values(), *self._ended, *self._unread]:
            member.close()
            member.close_log()

    def _follow(self, now: Moment, reading: Reading) -> None:
        rows: list[Row] = []
        for member in self._ended:
            if member.is_open:
                self._ask_status(member, reading)
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
        self._soon_until_ns = now.monotonic_ns + _SUCCESSOR_NS
        self._next_ns = min(self._next_ns, now.monotonic_ns + NS_PER_S)
        member.ended_ns = now.time_ns
        self._stalls.forget(member.member.job, member.pid)
        self._ended.append(member)
        self._ask_status(member, reading)

    def _ask_status(self, member: FollowedMember, reading: Reading) -> None:
        member.ask_status(self._read_closely)
        if member.status and (_is_of_all(member) or member.status & _BY_SIGNAL):
            reading.rows.setdefault("events", []).append(_death(member))
            kind, ended_ns = "job_member_died", member.ended_ns or 0
            reading.alarms.append(Alarm(kind, None, None, None, False, ended_ns))

    def _look(self, now: Moment, reading: Reading) -> None:
        boot_ns = self._boottime()
        self._newcomers.look(boot_ns)
        self._is_listing_due = True
        is_soon = now.monotonic_ns < self._soon_until_ns
        every_ns = min(self._every_ns, NS_PER_S) if is_soon else self._every_ns
        self._next_ns = now.monotonic_ns + every_ns
        taken = self._newcomers.take(ASKED_SOON if is_soon else ASKED_AT_ONCE)
        asked = [one for one in taken if one.pid not in self._members]
        asked += self._new_drivers(now, boot_ns, reading)
        answers = (
            self._lookup.read_variables([one.pid for one in asked], VARIABLES) if asked else []
        )
        for newcomer, variables in zip(asked, answers, strict=True):
            if variables is None:
                self._newcomers.ask_again(newcomer)
            elif newcomer.pid not in self._members:
                self._count_refusal(is_refused=variables.variables is None)
                started_ns = now.time_ns - (boot_ns - newcomer.started_ns)
                self._join(newcomer, variables, started_ns, now, reading)
        left = len(self._newcomers.waiting) + self._newcomers.unread
        if left > 2 * ASKED_AT_ONCE:
            cause = "more new processes than are looked at: the others wait"
            span = now.time_ns - self._every_ns, now.time_ns
            reading.gaps.append(Gap("job_members", *span, cause, lost=left))

    def _new_drivers(self, now: Moment, boot_ns: int, reading: Reading) -> list[Newcomer]:
        """Processes that were looked at before they called `ray.init`. One that was submitted is
        followed by then, under the name of its submission: now its job has Ray's own as well.
        """
        found = []
        for pid, driver in list(self._drivers.items()):
            member = self._members.get(pid)
            if member is not None:
                is_own = member.started_ns <= driver.written_ns + _LOG_LATE_NS
                if is_own and is_submission(member.member, driver.member):
                    member.submitted, member.member = member.member, driver.member
                    _write(member, now, reading)
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
        process: ProcessVariables,
        started_ns: int,
        now: Moment,
        reading: Reading,
    ) -> None:
        pid, uid = newcomer.pid, newcomer.uid
        driver, found = self._drivers.get(pid), membership(process.variables or {}, process.log)
        submitted = found if driver is not None and is_submission(found, driver.member) else None
        found = driver.member if driver else found
        if found is None and waits_for_job(process.log):
            self._newcomers.postpone(newcomer)
        if found is None or not self._is_own(process.cgroup):
            return
        if len(self._members) >= MEMBER_LIMIT:
            cause = f"more than {MEMBER_LIMIT} members of jobs are not followed"
            reading.gaps.append(Gap("job_members", now.time_ns, now.time_ns, cause, lost=1))
            if not self._make_room(tenant_of(uid, process.cgroup)):
                return
        if self._is_others(found.job, uid):
            found = found._replace(job=f"{found.job} (uid {uid})")
        comm = clean(newcomer.stat.comm)
        member = FollowedMember(
            pid, comm, process.cgroup, started_ns, found, _cores(pid), process.log, uid=uid,
            started_ticks=newcomer.stat.started_ticks, submitted=submitted,
        )  # fmt: skip
        routes = read_once(f"{self._proc}/{pid}/net/fib_trie") or b""
        member.address = parse_address(routes.decode("ascii", "replace"))
        if member.open(self._proc):
            self._members[pid] = member
            self._unread.append(member)
            _write(member, now, reading)

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
        for member in list(self._ended):
            is_late = now.time_ns - (member.ended_ns or 0) >= _END_KNOWN_NS
            if is_late or (member.log < 0 and not member.is_open):
                member.close()
                self._ended.remove(member)
                _write(member, now, reading)

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
            self._logs.start(lambda: list(read_logs(root_of, new, ended, listed)))

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


def _write(member: FollowedMember, now: Moment, reading: Reading) -> None:
    reading.rows.setdefault("job_members", []).extend(member.rows(now.time_ns))


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
