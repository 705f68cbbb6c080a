"""Why a program was late, as text: the waits that cost it most, and who was in the way."""

from necroscope.analysis.task_waits import TaskWait
from necroscope.analysis.victim import VictimReport
from necroscope.model.units import format_moment
from necroscope.views.format import literal

_KINDS = {
    "runnable": "wanted a core and had none",
    "blocked": "slept in the kernel",
    "futex": "waited for a lock of its own program",
    "file_lock": "waited for a file lock",
    "unread": "waited to write to a full pipe or socket",
    "stopped": "was stopped, by a signal, a tracer or the freezer",
    "semaphore": "waited for a shared semaphore",
    "unserved": "waited for an answer of a server that had not read its question",
    "asleep": "slept voluntarily while others waited for what it may have had",
    "unanswered": "slept to read, or until its child ended, while others waited for it",
}


def victim_to_text(report: VictimReport) -> str:
    span = f"{format_moment(report.span.from_ns)} to {format_moment(report.span.to_ns)}"
    if not report.waits:
        return f"no wait of {report.name} is recorded from {span}\nhint: {_way_out(report)}"
    lines = [f"{report.name}, {span}", ""]
    lines += [
        f"  {_KINDS[kind]} {_times(count)}, {report.total_s[kind]:.2f} s in all"
        for kind, count in report.count.items()
    ]
    lines += ["", "  what cost most, and the longest wait of each"]
    for alike in report.waits:
        wait = alike.longest
        lines.append(f"    {format_moment(wait.from_ns)[11:]}  {wait.words()}")
        lines += [f"      {text}" for text in _in_the_way(wait)]
        if alike.count > 1:
            lines.append(f"      {alike.count} waits like this, {alike.total_s:.2f} s in all")
    return "\n".join(lines)


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def _way_out(report: VictimReport) -> str:
    if report.others:
        return f"the programs that waited longest: {', '.join(map(literal, report.others))}"
    return "no wait of any program is recorded here; see: necroscope info, docs/waits.md"


def _in_the_way(wait: TaskWait) -> list[str]:
    found = []
    if wait.by is not None and wait.is_for_a_core:
        ran_s = wait.by_ran_ns / 1e9
        found.append(
            f"{wait.by.comm}[{wait.by.tid}] ({wait.by.policy}) had the core for {ran_s:.2f} s"
        )
    elif wait.by is not None:
        found.append(f"{wait.by.comm}[{wait.by.tid}] ended it")
    elif wait.is_for_a_core:
        found.append(
            "no task kept the core for long: many took turns, or the CPU quota of its cgroup"
            " (cpu.max) was used up"
        )
    if wait.stack:
        what = "had slept" if wait.is_for_a_core else "slept"
        found.append(f"{what} in {' < '.join(wait.stack[:6])}")
    if wait.held_by is not None:
        where = f", in {' < '.join(wait.held_stack[:6])}" if wait.held_stack else ""
        found.append(f"{wait.held_by.comm}[{wait.held_by.tid}] had it meanwhile{where}")
    if wait.by_stack:
        found.append(f"woken from {' < '.join(wait.by_stack[:6])}")
    return found
