"""Tasks wait for a file server or device that does not answer.

Signature: idle cores, a load average that rises with each task that touches the mount, I/O pressure
at a flat level as long as it lasts, tasks in state D; later `task blocked for more than 120
seconds` and `server not responding` in the log. A wait for NFS that can be killed shows in that
line alone.
Confirming signal: the log names a task that is blocked in a wait for I/O (it says so, or its call
trace leads through a block device or a file system) or an NFS server that does not respond; or
tasks were found in state D that did not run once between two looks; or, before a second look, I/O
pressure stays at a level that hardly changes for eight seconds and more, and tasks wait for a file
server, or no more blocks are completed than before: nothing moves; the same for a program that was
timed to sleep that long for a device or file server. A task that is seen to run meanwhile is not
stuck.
Source: Netflix, FUSE deadlock (2023); kubernetes #101622, #122491; longhorn #12478;
Documentation/accounting/psi.rst; net/sunrpc/clnt.c.
"""

import os
import re
from collections import Counter
from typing import Any, Final

import numpy as np

from necroscope.analysis.attribution import culprit_from
from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.columns import ColumnArrays
from necroscope.analysis.episodes import EpisodeKind
from necroscope.analysis.event_cores import JoinedEvent
from necroscope.analysis.evidence import LIMIT_OF_IO, of_event, suffering
from necroscope.analysis.functions import Functions, functions
from necroscope.analysis.hung_tasks import hung_tasks
from necroscope.analysis.page_writers import pages_moved
from necroscope.analysis.report import Culprit, Evidence, Origin, WillNotHelp
from necroscope.analysis.stacks import TaskShare
from necroscope.analysis.task_origin import origin_of, process_origin
from necroscope.analysis.task_waits import TaskWait
from necroscope.analysis.thresholds import Threshold, Thresholds
from necroscope.analysis.wait_channels import DEVICE
from necroscope.model.definitions import late_ns
from necroscope.model.span import Span
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_S

SILENT_EVENT: Final = "nfs_server_silent"
# Who uses a mount whose server is somewhere else, and the process that serves one from this
# machine.
CLIENTS: Final = functions(
    "fuse_readahead fuse_file_read_iter fuse_file_write_iter fuse_send_* fuse_simple_request"
    " __fuse_simple_request fuse_simple_background fuse_do_getattr fuse_lookup* fuse_permission"
    " fuse_dentry_revalidate nfs_file_read nfs_readahead nfs_getattr nfs_lookup* nfs4_proc_*"
    " nfs_file_write rpc_run_task rpc_call_sync cifs_* smb2_* ceph_*"
)
SERVERS: Final = functions(
    "fuse_dev_read fuse_dev_write fuse_dev_do_read fuse_dev_do_write fuse_dev_poll"
)
LIMITS: Final = Thresholds(
    lasts_s=Threshold(8.0, "disks that are slow for a moment recover within a few seconds"),
    level=Threshold(0.3, "of the time some work stalls for I/O: less is a busy disk"),
    flat=Threshold(0.1, "of the level, as it may vary: what stands still does not come and go"),
    few_per_s=Threshold(
        50.0, "completions that are journals and logs; the smallest cloud disks do a hundred"
    ),
    no_more=Threshold(1.3, "times the completions of quiet time: nothing more moves"),
    second_look_s=Threshold(8.0, "the recorder looks again 6 s after the first, at its next tick"),
    second_look=Threshold(0.6, "of the time stalled until then, or it does not look again"),
    runs=Threshold(0.03, "of a core's time: less is an interrupt's, or the end of what ran before"),
    samples=Threshold(2.0, "one sample may be chance"),
)
_MOST_EVENTS: Final = 3
# Interrupts of storage, as /proc/interrupts calls them; devices with a queue for each core raise no
# block softirq.
_STORAGE: Final = re.compile(
    r"nvme|virtio\d+-req|ahci|megaraid|mpt[23]sas|hpsa|aacraid|qla2|lpfc|xen.*blkif|vmw_pvscsi|ufshcd"
)


def assess(case: Case) -> Assessment | None:
    events = [*case.events_of(SILENT_EVENT), *_hung_in_io(case)]
    stood = _stood_longest(case)
    if not events and not stood and not case.has(EpisodeKind.IO_BLOCKED):
        return None
    level, spread = _plateau(case)
    done = _completed_per_s(case)
    culprit, named_by = _find_blocked_task(case, events)
    if stood and not named_by:
        culprit, named_by = _longest(case, stood)
    waits_for_server = any(function in CLIENTS for function in culprit.path)
    is_still = _is_still(case, done)
    is_reported = bool(events) or bool(_standing(case, "io_hung"))
    moves, ran = ([], []) if is_reported else (_moves(case), _ran(case))
    moves += [] if is_reported or waits_for_server else pages_moved(case, stood)
    has_stood = bool(stood) and (waits_for_server or is_still) and not (moves or ran)
    is_certain = is_reported or has_stood
    waits_for_disk = not (is_certain or waits_for_server)
    is_slow = done is not None and not is_still and waits_for_disk
    is_flat = _is_flat(case, level, spread) and not moves
    evidence = [*_evidence(case, events, level, done), *named_by]
    return Assessment(
        explains=_explains(case, level, is_certain=is_certain),
        is_confirmed=is_certain or (is_flat and (is_still or waits_for_server)),
        evidence=[*evidence, *(item for item in suffering(case) if item not in evidence)],
        against=[*moves, *ran, *([_slow(case)] if is_slow else [])],
        doubt=0.6 if ran else 0.4 if is_slow else 0.0,
        summary=_summary(case, culprit, {w.task.pid for w in stood}),
        culprit=culprit,
        origin=_silent_server(case) or _server(case) or _file_system(case) or origin_of(culprit),
    )


def _stood_longest(case: Case) -> list[TaskWait]:
    """Programs that slept for a device or a file server for that long, the longest first."""
    found = [
        wait
        for wait in case.waits_for(DEVICE)
        if wait.task.policy != "kernel" and wait.seconds >= case.limits.lasts_s
    ]
    return sorted(found, key=lambda wait: -wait.seconds)


def _longest(case: Case, stood: list[TaskWait]) -> tuple[Culprit, list[Evidence]]:
    task = stood[0].task
    culprit = Culprit(task.comm, task.pid, task.cgroup, path=stood[0].stack[::-1])
    return culprit, [case.evidence(wait.words(), "waits") for wait in stood[:_MOST_EVENTS]]


def _hung_in_io(case: Case) -> list[JoinedEvent]:
    """Hung tasks that wait for I/O by their trace; one without a trace only where I/O stalls."""
    is_stalled = case.has(EpisodeKind.IO_BLOCKED)
    return [
        task.event
        for task in hung_tasks(case)
        if task.is_input_output or (is_stalled and not task.trace)
    ]


def _is_still(case: Case, done: tuple[float, float] | None) -> bool:
    limits = case.limits
    return done is not None and done[0] <= max(limits.few_per_s, limits.no_more * done[1])


def _is_flat(case: Case, level: float, spread: float) -> bool:
    limits = case.limits
    is_level = level >= limits.level and spread <= limits.flat * max(level, limits.level)
    return is_level and case.seconds >= limits.lasts_s


def _evidence(
    case: Case, events: list[JoinedEvent], level: float, done: tuple[float, float] | None
) -> list[Evidence]:
    stalled = f"some work stalled on I/O {level:.0%} of {case.seconds:.0f} s"
    idle = case.counters.machine_share("idle") or 0.0
    texts = []
    if case.has(EpisodeKind.IO_BLOCKED):
        texts.append((f"{stalled}, at a level that hardly changed", "pressure"))
    if done is not None:
        text = f"storage completed {done[0]:,.0f} requests per second, {done[1]:,.0f} before"
        texts.append((text, "softirqs"))
    texts.append((f"the cores were idle or waiting {idle:.0%} of the time", "cores"))
    return [
        *(of_event(case, event) for event in events[:_MOST_EVENTS]),
        *(case.evidence(text, table) for text, table in texts),
    ]


def _explains(case: Case, level: float, *, is_certain: bool) -> float:
    """A core held by something else is not explained by who stands still meanwhile."""
    if case.core is not None and any(
        episode.is_strong and episode.cpu == case.core for episode in case.episodes
    ):
        return 0.1
    return 1.0 if is_certain else min(1.0, 2 * level)


def _completed_per_s(case: Case) -> tuple[float, float] | None:
    """Requests that storage completed on the whole machine, per second: in the incident and before;
    None if it is unknown.
    """
    found = []
    blocks = case.counters.rate("softirqs", "block")
    if blocks.now is not None:
        found.append((blocks.now * case.node.cores, (blocks.before or 0.0) * case.node.cores))
    rows = case.counters.columns("interrupts")
    if len(rows):
        rows = rows.at(
            np.array(
                [_STORAGE.search(str(action)) is not None for action in rows["action"]], dtype=bool
            )
        )
        from_ns, to_ns = case.window
        now = rows.within([Span(from_ns, to_ns + late_ns(TABLES["interrupts"]))])
        before = rows.within([Span(from_ns - 60 * NS_PER_S, from_ns)])
        found.append((_per_second(now), _per_second(before)))
    return max(found, default=None)


def _per_second(rows: ColumnArrays) -> float:
    """Rows are by core: the time is that of the reads."""
    times, first = np.unique(rows["time"], return_index=True)
    elapsed_s = float(rows["elapsed_ns"][first].sum()) / NS_PER_S if len(times) else 0.0
    return float(rows["count"].sum()) / elapsed_s if elapsed_s > 0 else 0.0


def _slow(case: Case) -> Evidence:
    return case.evidence("storage still completes requests: slow I/O, not a hang", "softirqs")


def _moves(case: Case) -> list[Evidence]:
    """Where the second look was due and found no task: those of the first look had run."""
    looked_ns = min((row["time"] for row in _standing(case, "io_blocked")), default=None)
    rows = case.counters.columns("pressure")
    if looked_ns is None or not len(rows):
        return []
    rows = rows.at(rows["resource"] == "io").within([Span(looked_ns, case.window[1])])
    is_stalled = np.nan_to_num(rows["some_ns"] / rows["elapsed_ns"]) >= case.limits.second_look
    until = len(rows) if is_stalled.all() else int(np.argmin(is_stalled))
    if rows.at(slice(until)).elapsed_s < case.limits.second_look_s:
        return []
    return [
        case.evidence(
            "a task in state D at the first look had run before the second: slow I/O, not a hang",
            "tasks",
        )
    ]


def _ran(case: Case) -> list[Evidence]:
    """Who was found in state D and is sampled after that; or tasks at work in files of a server,
    which has answered them.
    """
    rows = _standing(case)
    looked_ns = min((row["time"] for row in rows), default=0)
    samples = case.samples.machine.samples
    own = np.isin(samples.tid, [row["tid"] for row in rows]) & (samples.time_ns > looked_ns)
    elapsed_s = case.samples.machine.elapsed_s / case.node.cores
    share = float(samples.weight[own].sum()) * case.samples.machine.period_s / elapsed_s
    if share >= case.limits.runs:
        return [
            case.evidence(
                f"tasks found in state D also ran, {share:.0%} of a core: slow I/O, not a hang",
                "samples",
            )
        ]
    share = case.samples.machine.time_share(CLIENTS) * case.node.cores
    if share >= case.limits.runs:
        return [
            case.evidence(
                f"tasks spent {share:.0%} of a core on a server's files: it answers", "samples"
            )
        ]
    return []


def _plateau(case: Case) -> tuple[float, float]:
    """How high I/O pressure was in the inner part of the incident, and how much it varied there."""
    rows = case.counters.columns("pressure")
    rows = rows.at(rows["resource"] == "io").within([case.window]) if len(rows) else rows
    if len(rows) < 4:
        return 0.0, 1.0
    share = np.nan_to_num(rows["some_ns"] / rows["elapsed_ns"])[1:-1]
    return float(np.median(share)), float(np.percentile(share, 90) - np.percentile(share, 10))


def _find_blocked_task(case: Case, events: list[JoinedEvent]) -> tuple[Culprit, list[Evidence]]:
    """Who stands: a captured task in state D, else whom the log names, else who used such a mount
    before and is not seen now.
    """
    hung = _standing(case, "io_hung")
    rows = hung or _standing(case)
    if rows:
        counts = Counter(row["comm"] for row in rows)
        first = max(rows, key=lambda row: counts[row["comm"]])
        path = tuple(reversed(first["stack"].split(";"))) if first["stack"] else ()
        others = f" and {len(rows) - 1} more are" if len(rows) > 1 else " is"
        where = f" in {path[-1]}" if path else ""
        file = f", at {first['file']}" if first["file"] else ""
        still = ", and did not run once in 6 s" if hung else ""
        text = f"{first['comm']}{others} in state D{where}{file}{still}"
        return Culprit(first["comm"], first["pid"], first["cgroup"], path=path), [
            case.evidence(text, "tasks")
        ]
    for event in events:
        if event.fields.get("comm"):
            return Culprit(str(event.fields["comm"]), _number(event.fields.get("pid"))), []
    gone = _find_vanished_task(case, CLIENTS)
    if gone is None:
        return Culprit(), []
    return culprit_from(gone, (), case.node), [
        case.evidence(
            f"{gone.comm} used a file server's mount before, and has not run since", "samples"
        )
    ]


def _standing(case: Case, trigger: str | None = None) -> list[dict[str, Any]]:
    """Captured tasks in state D, of each the last capture."""
    rows = [
        row
        for row in case.rows("tasks", before_s=1)
        if row["state"] == "D" and trigger in (None, row["trigger"])
    ]
    return list({row["pid"]: row for row in rows}.values())


def _find_vanished_task(case: Case, group: Functions) -> TaskShare | None:
    """The task that was in these functions in quiet time and is in none of them in the incident."""
    here = case.samples.machine.of(group)
    before = [
        task
        for task in case.samples.machine_before.tasks(group)
        if task.weight >= case.limits.samples
    ]
    return next((task for task in before if not here.of_task(task.comm, pid=task.pid).total), None)


def _silent_server(case: Case) -> Origin | None:
    """The NFS server that the log names first."""
    names = [
        str(event.fields["server"])
        for event in case.events_of(SILENT_EVENT)
        if event.fields.get("server")
    ]
    return Origin("host", names[0]) if names else None


def _server(case: Case) -> Origin | None:
    """The process behind a FUSE mount, as it worked before."""
    tasks = [
        task
        for task in case.samples.machine_before.tasks(SERVERS)
        if task.weight >= case.limits.samples
    ]
    return process_origin(tasks[0].comm) if tasks else None


def _file_system(case: Case) -> Origin | None:
    """Where all who stand still have their files: what serves it does not answer. Files all over
    the tree say nothing.
    """
    files = {
        row["file"] for row in _standing(case, "io_hung") if str(row["file"] or "").startswith("/")
    }
    folder = os.path.commonpath([os.path.dirname(file) for file in files]) if files else "/"
    return Origin("directory", folder) if folder != "/" else None


def _number(value: object) -> int | None:
    return int(str(value)) if str(value).isdigit() else None


def _summary(case: Case, culprit: Culprit, stood: set[int]) -> str:
    server = _silent_server(case)
    if server is not None:
        return f"NFS server {server.name} does not answer, and tasks that use its files wait"
    others = (stood | {row["pid"] for row in _standing(case)}) - {culprit.pid}
    who = f"{culprit.comm} and others" if others else culprit.comm
    return f"{who or 'tasks'} waited {case.seconds:.0f} s for I/O that did not complete"


CAUSE = Cause(
    slug="blocked-io",
    title="tasks wait for I/O that does not complete",
    confirming=(
        "a task blocked in I/O or an NFS server that does not respond in the log; or tasks in state"
        " D that did not run once between two looks; or, before a second look, I/O pressure at a"
        " flat level or a timed sleep for 8 s and more, and tasks in a wait for a file server, or"
        " no more blocks completed"
    ),
    would_confirm=(
        "tasks in state D and where they wait: `ps -eo pid,stat,wchan:32,comm | grep ' D'`,"
        " /proc/PID/stack"
    ),
    assess=assess,
    thresholds=LIMITS,
    fix=(
        (
            "find the mount: cat /proc/PID/stack of a task in D (fuse_*, nfs_*, rpc_wait_*,"
            " jbd2_*), then its open files"
        ),
        "FUSE: restart the daemon; echo 1 > /sys/fs/fuse/connections/N/abort ends all the waits",
        (
            "NFS: fix the server; soft mounts (soft,timeo=,retrans=) where an error is better than"
            " a wait"
        ),
        "a frozen file system: fsfreeze -u; a failed device: its driver's lines in the log",
        LIMIT_OF_IO,
    ),
    verify=("no task stays in state D for over a second, and PSI io `some` is at its usual level",),
    will_not_help=(
        WillNotHelp("more CPU", "the cores are idle or do other work"),
        WillNotHelp(
            "SIGKILL for a task that waits for a device",
            "the signal takes effect only when the wait ends",
        ),
        WillNotHelp(
            "restarting the node agent", "the new agent will touch the same mount and hang too"
        ),
    ),
)
