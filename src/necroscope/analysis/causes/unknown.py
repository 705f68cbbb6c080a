"""No mechanism was found, or none with its confirming signal: then all that is known is said.

Signature: something was held or waited, and no other cause explains it.
Confirming signal: none; a cause is never guessed.
Source: the recording itself.
"""

from collections.abc import Sequence
from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.episodes import EpisodeKind
from necroscope.analysis.evidence import LIMIT_OF_IO, suffering, what_held_the_core
from necroscope.analysis.hung_tasks import hung_tasks
from necroscope.analysis.report import Culprit, Evidence, Origin
from necroscope.analysis.scheduling import waits_for_the_core
from necroscope.analysis.task_origin import process_origin
from necroscope.analysis.task_waits import TaskWait
from necroscope.analysis.unnamed_origin import origin_behind
from necroscope.analysis.wait_channels import DEVICE, STOPPED
from necroscope.analysis.waits import lock_wait
from necroscope.model.definitions import REAL_TIME
from necroscope.model.units import format_moment

# Less of the core's samples is not holding it.
_HOLDS: Final = 0.5
# Who ran while a task stood: this many are named, with at least this much of the time.
_NAMED: Final = 4
_NOTICED: Final = 0.01
# A wait for a core that is worth the first sentence.
_LONG_S: Final = 0.5
# Between tasks of equal weight no turn is as late as this.
_STARVED_S: Final = 3.0
_WEIGH: Final = (
    "compare the weights of both: nice (ps -o ni), and cpu.shares or cpu.weight of the cgroups in"
    " /proc/PID/cgroup; raise the one or lower the other"
)
_FRAMES_SHOWN: Final = 4
_NAME_SHOWN: Final = 60


def assess(case: Case) -> Assessment:
    """The core, the mode, the process, its path and its period."""
    if case.events and not case.episodes:
        return _of_the_log(case)
    if case.core is None and case.has(EpisodeKind.TASK_BLOCKED):
        return _of_a_wait(case)
    culprit = case.culprit()
    held = what_held_the_core(case)
    share = case.samples.share_of(culprit)
    origin, leads = origin_behind(case, culprit, is_holder=share >= _HOLDS)
    starved = _starved(case)
    evidence = [*held, *leads, *starved, *_paths(case), *_wait(case), *suffering(case)]
    who = f" by {culprit.comm}" if culprit and share >= _HOLDS else ""
    how = (
        f"was {_how(case)} in {case.mode} mode{who}"
        if case.mode
        else "was in trouble"
        if case.episodes
        else "was looked at"
    )
    path = f" in {culprit.path[-1]}" if who and culprit and culprit.path else ""
    most = (
        f", with {culprit.comm} on it {share:.0%} of the time"
        if culprit and case.core is not None and 0 < share < _HOLDS
        else ""
    )
    quiet = "that alone is not an incident" if case.episodes else "nothing was wrong"
    end = "no known mechanism explains it" if case.cluster.is_strong or case.events else quiet
    return Assessment(
        explains=0.0,
        is_confirmed=False,
        evidence=evidence,
        culprit=culprit,
        origin=origin,
        summary=(
            f"{case.place} {how}{path} for {case.seconds:.1f} s{most}{case.beat}"
            f"{_who_waited(case)}; {end}"
        ),
        fix=(*((_WEIGH,) if starved else ()), *_look(case)),
    )


def _starved(case: Case) -> list[Evidence]:
    """A task that got no turn behind user code of its own class, which any tick may interrupt: its
    weight is the reason, of which nothing is recorded.
    """
    waits = [] if case.mode != "user" else waits_for_the_core(case, _STARVED_S)
    policies = {row["policy"] for row in case.tasks} | {w.by.policy for w in waits if w.by}
    if not waits or policies & set(REAL_TIME) or case.has(EpisodeKind.THROTTLED):
        return []
    comm = waits[0].task.comm
    text = (
        f"a fair scheduler gives each task its turn within milliseconds: {comm} weighs far less"
        " than what ran on the core, by cpu.shares or cpu.weight of a cgroup, or by nice"
    )
    return [case.evidence(text, "waits", case.core)]


def _who_waited(case: Case) -> str:
    """The ordinary task that waited longest for the core, if that was long."""
    waits = waits_for_the_core(case, _LONG_S)
    if not waits:
        return ""
    return f", and {waits[0].task.comm} waited up to {waits[0].seconds:.1f} s for it"


def _of_the_log(case: Case) -> Assessment:
    """What only the log reports: its line leads, and whom it names is the culprit, not who merely
    was on the core.
    """
    first = next(
        (event for event in case.events if event.happening.is_major), case.events[0]
    ).happening
    hung = hung_tasks(case)
    texts = dict.fromkeys(task.words for task in hung)
    return Assessment(
        explains=0.0,
        is_confirmed=False,
        evidence=[
            *(case.evidence(text, "events") for text in texts),
            *suffering(case),
            *_paths(case),
            *_wait(case),
        ],
        culprit=Culprit(first.comm, first.pid, path=hung[0].trace[::-1] if hung else ()),
        summary=f"{hung[0].words if hung else first.message}; no known mechanism explains it",
        fix=_look(case),
    )


def _of_a_wait(case: Case) -> Assessment:
    """Nothing but a task that stood: who, how long, where in the kernel, who ended it, and who ran
    meanwhile.
    """
    subjects = {episode.subject for episode in case.episodes}
    waits = [wait for wait in case.waits if wait.subject in subjects]
    longest = max(waits, key=lambda wait: wait.seconds)
    task, tasks = longest.task, {wait.task.tid for wait in waits}
    others = f", and {len(tasks) - 1} more tasks with it" if len(tasks) > 1 else ""
    culprit, origin = _in_the_way(longest)
    texts = [*_about_the_wait(longest), *_who_stood_still(case, longest)]
    return Assessment(
        explains=0.0,
        is_confirmed=False,
        evidence=[
            *(case.evidence(text, "waits") for text in texts),
            case.evidence(_who_ran(case), "samples"),
            *suffering(case),
        ],
        culprit=culprit,
        origin=origin,
        summary=f"{longest.words()}{others}; no known mechanism explains it",
        fix=(
            *((LIMIT_OF_IO,) if any(wait.channel.kind == DEVICE for wait in waits) else ()),
            f"look at all of its waits: necroscope flame DIR --waits {_window(case)}",
            f"all waits of that program: necroscope diagnose DIR --victim {task.pid}",
        ),
    )


def _in_the_way(wait: TaskWait) -> tuple[Culprit, Origin | None]:
    """Who had what was waited for, or ended the wait; else who waited, which cannot be acted on."""
    ahead, task = wait.given_by, wait.task
    if ahead is None:
        return Culprit(task.comm, task.pid, task.cgroup, path=wait.stack[::-1]), None
    path = wait.by_stack if wait.is_given else wait.held_stack
    culprit = Culprit(ahead.comm, ahead.pid, ahead.cgroup, path=path[::-1])
    return culprit, process_origin(ahead.comm)


def _about_the_wait(wait: TaskWait) -> list[str]:
    """Where it slept, who had it, who ended it."""
    who = f"{wait.task.comm}[{wait.task.tid}]"
    texts = [f"{who} slept in {' < '.join(wait.stack[:6]) or 'the kernel'}"]
    if wait.held_by is not None:
        holder, where = wait.held_by, " < ".join(wait.held_stack[:4])
        texts.append(
            f"{holder.comm}[{holder.tid}] had it{f', and was in {where}' if where else ''}"
        )
    if wait.by is not None:
        woken = " < ".join(wait.by_stack[:4])
        texts.append(f"{wait.by.comm}[{wait.by.tid}] ended it, through {woken}")
    elif not wait.is_open:
        texts.append("an interrupt or a timer ended it, not a task")
    return texts


def _who_stood_still(case: Case, wait: TaskWait) -> list[str]:
    """Processes that were stopped for most of the wait: maybe it was one of them that had to end
    it.
    """
    stops = [one for one in case.node.waits if one.channel.kind == STOPPED]
    near = [
        (min(one.to_ns, wait.to_ns) - max(one.from_ns, wait.from_ns), one.words()) for one in stops
    ]
    found = [words for both_ns, words in near if both_ns >= _HOLDS * (wait.to_ns - wait.from_ns)]
    return [f"meanwhile {words}" for words in found[:_NAMED]]


def _who_ran(case: Case) -> str:
    """On all cores while it stood, as a share of them."""
    machine, cores = case.samples.machine, case.node.cores
    elapsed_s = machine.elapsed_s or 1.0
    ran = [
        (task.comm, task.weight * machine.period_s / elapsed_s) for task in machine.tasks()[:_NAMED]
    ]
    named = ", ".join(f"{comm} {share:.0%}" for comm, share in ran if share >= _NOTICED)
    idle = case.counters.machine_share("idle")
    rest = f"; the cores were {idle:.0%} idle" if idle is not None else ""
    return f"of the time of {cores} cores meanwhile: {named or 'no task used 1 %'}{rest}"


def _how(case: Case) -> str:
    return "held" if case.cluster.is_strong else "busy"


def _look(case: Case) -> tuple[str, ...]:
    return (f"look at its flame graph: necroscope flame DIR {_window(case)}",)


def _window(case: Case) -> str:
    """The options that show the part of it that was looked at."""
    from_ns, to_ns = case.times.spans[0]
    core = f" --cpu {case.core}" if case.core is not None else ""
    quiet = max(case.times.quiet, key=lambda span: span[1] - span[0], default=None)
    baseline = f" --baseline {format_moment(quiet[0])}..{format_moment(quiet[1])}" if quiet else ""
    return (
        f"--from {format_moment(from_ns)} --to {format_moment(to_ns)}{core}{baseline} -o"
        " incident.html"
    )


def _innermost(path: Sequence[str]) -> str:
    """The last frames of a path. Names of C++ functions run to hundreds of characters."""
    return " > ".join(
        name if len(name) <= _NAME_SHOWN else f"{name[:_NAME_SHOWN]}…"
        for name in path[-_FRAMES_SHOWN:]
    )


def _paths(case: Case) -> list[Evidence]:
    """What is new on the core, and what it displaced."""
    found = [
        case.evidence(
            f"{change.now:.0%} of the time, {change.before:.0%} before: {_innermost(change.path)}",
            "samples",
            case.core,
        )
        for change in case.samples.differential.grown
    ]
    gone = [
        change for change in case.samples.differential.shrunk if change.now < 0.1 * change.before
    ]
    return [
        *found,
        *(
            case.evidence(f"vanished: {_innermost(change.path)}", "samples", case.core)
            for change in gone[:1]
        ),
    ]


def _wait(case: Case) -> list[Evidence]:
    """A wait is not a cause, but says what the lock is of and who has it."""
    wait = lock_wait(case, least=0.2)
    if wait is None:
        return []
    holder = f"; {wait.holders[0].comm} runs there without waiting" if wait.holders else ""
    text = f"{wait.share:.0%} of what ran waited for a lock, mostly for {wait.wanted_for}{holder}"
    return [case.evidence(text, "samples", case.core)]


CAUSE = Cause(
    slug="unknown",
    title="no known mechanism",
    confirming="none: a cause is never guessed",
    assess=assess,
    fix=("keep the recorder running: the next occurrence, and the time before it, will show more",),
    verify=("the episode does not recur",),
)
