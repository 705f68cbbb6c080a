"""A real-time task does not give up its core, and ordinary threads of that core starve.

Signature: one task of class FIFO, RR or deadline has nearly all samples of a core; ordinary threads that must run there (threaded
NAPI, ksoftirqd, kworkers) are runnable and get no time; once a boot the log says `sched: RT throttling activated`.
Confirming signal: something waits behind the task, and its policy is a real-time one; or, where the policy was not captured, it
runs in user mode, where every tick may take the core from it, and a thread of that core still waits most of the time: fair
scheduling would give it half. Without a wait it is a spinner that hurts nobody: softirqs still run at each interrupt's exit.
Source: Documentation/scheduler/sched-rt-group.rst; openshift performance-addon-operators #481; corosync #520.
"""

from typing import Any, Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.episodes import SUFFERING
from necroscope.analysis.evidence_texts import of_event, suffering, what_held_the_core
from necroscope.analysis.report import Origin, WillNotHelp

REAL_TIME: Final = frozenset({"fifo", "rr", "deadline"})
# Kernel threads of class FIFO are the system's own: migration/N, the watchdogs, threaded interrupts.
_OF_THE_KERNEL: Final = ("migration/", "irq/", "watchdog/", "cpuhp/", "idle_inject/", "stop/")
_MOSTLY: Final = 0.5
_USER: Final = 0.6
_UNFAIR: Final = 0.65


def assess(case: Case) -> Assessment | None:
    tasks = case.now.tasks()
    if case.core is None or not tasks or tasks[0].share < _MOSTLY:
        return None
    hog = tasks[0]
    described = _described(case, hog.comm)
    is_real_time = described is not None and described["policy"] in REAL_TIME
    waited = outranked(case)
    if not is_real_time and waited is None:
        return None
    rank = f"{described['policy']}, priority {described['priority']}" if described and is_real_time else "it goes first by class"
    return Assessment(
        explains=hog.share,
        is_confirmed=any(episode.kind in SUFFERING and episode.cpu == case.core for episode in case.episodes),
        doubt=0.0 if is_real_time else 0.15,
        evidence=[
            case.seen(f"{hog.comm} ({rank}) has {hog.share:.0%} of core {case.core}'s samples", "samples", case.core),
            *([case.seen(waited, "runqueue", case.core)] if waited else []),
            *(of_event(case, event) for event in case.events_of("rt_throttled")),
            *what_held_the_core(case)[:1],
            *suffering(case),
        ],
        would_confirm="its scheduling policy (chrt -p PID) and a thread that waits behind it",
        summary=f"{hog.comm} ({rank}) kept core {case.core} for itself, and what must run there waited",
        culprit=case.culprit(),
        origin=Origin("process", hog.comm),
        fix=(f"chrt --other -p 0 {hog.pid}  # an ordinary priority, or let it sleep between its work",) if hog.pid else (),
    )


def outranked(case: Case) -> str | None:
    """In words: a thread of the core waited so much behind user code that it cannot be by fair scheduling; None if not so."""
    user = case.share("user") or 0.0
    share = max((case.thread_wait_share(prefix) or 0.0) for prefix in ("napi/", "ksoftirqd/"))
    if user < _USER or share < _UNFAIR:
        return None
    return f"a thread of core {case.core} waited {share:.0%} of the time behind code in user mode, which any tick may interrupt"


def _described(case: Case, comm: str) -> dict[str, Any] | None:
    """What was captured of the task when a trigger fired on its core."""
    own = [row for row in case.tasks if row["comm"] == comm and not comm.startswith(_OF_THE_KERNEL)]
    return next((row for row in own if row["policy"] in REAL_TIME), own[0] if own else None)


CAUSE = Cause(
    slug="rt-hog",
    title="a real-time task keeps its core for itself",
    confirming="a real-time scheduling policy of the task that has the core, and a thread or softirq that waits behind it",
    assess=assess,
    fix=(
        "give the task an ordinary priority, or make it wait for its work instead of spinning",
        "if it must be real-time: keep network queues and their threads off its core",
    ),
    verify=("the run delay of the napi and ksoftirqd threads of that core stays near zero (table `runqueue`)",),
    will_not_help=(
        WillNotHelp("sched_rt_runtime_us = -1", "it takes away the twentieth of each second that ordinary threads still get"),
        WillNotHelp("a higher nice value for the victims", "every real-time task goes before every ordinary one"),
        WillNotHelp("more cores", "the victims are bound to this one"),
    ),
)
