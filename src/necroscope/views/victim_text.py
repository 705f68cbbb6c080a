"""Why a program was late, as text: its longest waits, and who was in the way of each."""

from necroscope.analysis.task_waits import TaskWait
from necroscope.analysis.victim import VictimReport
from necroscope.model.units import format_moment

_KINDS = {
    "runnable": "wanted a core and had none",
    "blocked": "slept in the kernel",
    "futex": "waited for a lock of its own program",
}


def victim_to_text(report: VictimReport) -> str:
    span = f"{format_moment(report.span.from_ns)} to {format_moment(report.span.to_ns)}"
    if not report.waits:
        return f"no wait of {report.name} is recorded from {span}"
    lines = [f"{report.name}, {span}", ""]
    lines += [
        f"  {_KINDS[kind]} {count} times, {report.total_s[kind]:.2f} s in all"
        for kind, count in report.count.items()
    ]
    lines += ["", "  the longest"]
    for wait in report.waits:
        lines.append(f"    {format_moment(wait.from_ns)[11:]}  {wait.words()}")
        lines += [f"      {text}" for text in _in_the_way(wait)]
    return "\n".join(lines)


def _in_the_way(wait: TaskWait) -> list[str]:
    found = []
    if wait.by is not None and wait.is_for_a_core:
        ran_s = wait.by_ran_ns / 1e9
        found.append(
            f"{wait.by.comm}[{wait.by.pid}] ({wait.by.policy}) had the core for {ran_s:.2f} s"
        )
    elif wait.by is not None:
        found.append(f"{wait.by.comm}[{wait.by.pid}] ended it")
    if wait.stack:
        found.append(f"slept in {' < '.join(wait.stack[:6])}")
    if wait.by_stack:
        found.append(f"woken from {' < '.join(wait.by_stack[:6])}")
    return found
