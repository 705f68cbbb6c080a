"""Is a core held by the kernel, or stolen, right now? User time alone is what busy nodes do all day: it is no finding."""

from collections import Counter
from typing import Final

from necroscope.analysis.checkup.finding import Finding, Level, NamedRow, Seen, number

QUESTION: Final = "saturated-core"
SATURATED_RATIO: Final = 0.9
_MODES: Final = ("system", "irq", "softirq", "steal")


def examine(seen: Seen) -> list[Finding]:
    rows = seen.newest("cores", "cpu")
    if not rows:
        return [Finding(QUESTION, Level.UNKNOWN, "how the cores spend their time could not be read", (), "is /proc mounted?")]
    return [_finding(row, seen) for row in rows if _held_share(row) >= SATURATED_RATIO]


def _held_share(row: NamedRow) -> float:
    return sum(number(row[f"{mode}_ns"]) for mode in _MODES) / max(number(row["elapsed_ns"]), 1)


def _finding(row: NamedRow, seen: Seen) -> Finding:
    cpu = number(row["cpu"])
    mode = max(_MODES, key=lambda mode: number(row[f"{mode}_ns"]))
    title = f"core {cpu} is held: {_held_share(row):.0%} of the last second outside user mode, most of it {mode}"
    hint = "record it: necroscope record --dir D --for 2m, then: necroscope diagnose D"
    return Finding(QUESTION, Level.PROBLEM, title, tuple(_who(cpu, seen)), hint)


def _who(cpu: int, seen: Seen) -> list[str]:
    """The task with the most samples on it, and the function it was most often in."""
    samples = [sample for sample in seen.samples() if sample.cpu == cpu]
    if not samples:
        return []
    (comm, pid), times = Counter((sample.comm, sample.pid) for sample in samples).most_common(1)[0]
    functions = Counter(s.kernel_function for s in samples if s.pid == pid and s.kernel_function is not None)
    where = f", most often in {functions.most_common(1)[0][0]}" if functions else ""
    return [f"{comm} (pid {pid}) had {times} of {len(samples)} samples{where}"]
