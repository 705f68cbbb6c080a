"""What the running recorder costs without stacks, by source: `scripts/bench recorder floor`; and
before and after a change, in turns: `scripts/bench floor TREE`, a checkout with its own .venv.

Under load others' work empties the caches between two ticks, so that the same code costs several
times what `tick` measures. The whole is measured from outside, on a recorder as it is; the parts in
another run, with a clock around each of them.
"""

import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from loads import mixed
from measured_child import MeasuredChild

HEAD = ["part", "times per second", "CPU µs each", "CPU µs per second"]
ROUNDS, WARM_S, WINDOW_S = 3, 6, 25
TURNS = 4
_LOOP, _DISK = "the loop itself", "thread of the disk: encode, write, sync"


def floor_rows(work: Path) -> list[list[str]]:
    """The parts, largest first, and the whole."""
    whole = [_cpu_us_a_second(work / f"floor-{number}") for number in range(ROUNDS)]
    _cpu_us_a_second(work / "floor-timed", work / "parts.json")
    parts = json.loads((work / "parts.json").read_text())
    rows = [
        [name, f"{count:.2f}", f"{us / count:.0f}", f"{us:.0f}"]
        for name, (count, us) in parts.items()
        if count
    ]
    rows.sort(key=lambda row: -int(row[3]))
    text = ", ".join(f"{us:.0f}" for us in whole)
    return [
        *rows,
        [
            f"**the process, without these clocks** ({text})",
            "",
            "",
            f"{statistics.median(whole):.0f}",
        ],
    ]


def compare(work: Path, tree: Path, turns: int) -> list[list[str]]:
    """Both at the same time under the same load: what disturbs one disturbs the other."""
    trees = {"before": tree, "after": Path(__file__).parents[1]}
    found: dict[str, list[float]] = {name: [] for name in trees}
    for turn in range(turns):
        with mixed(WARM_S + WINDOW_S + 3):
            time.sleep(1)
            children = {
                name: _start(work / f"{name}-{turn}", "", place) for name, place in trees.items()
            }
            time.sleep(WARM_S)
            started = {name: _process_cpu_ns(child.pid) for name, child in children.items()}
            time.sleep(WINDOW_S)
            for name, child in children.items():
                spent_ns = _process_cpu_ns(child.pid) - started[name]
                found[name].append(spent_ns / 1e3 / WINDOW_S)
            for child in children.values():
                child.finish()
    return [
        [name, f"{statistics.median(costs):.0f}", ", ".join(f"{cost:.0f}" for cost in costs)]
        for name, costs in found.items()
    ]


def _start(directory: Path, parts: str, tree: Path | None = None) -> MeasuredChild:
    options = ["record", "--dir", str(directory), "--json", "--free-floor", "0"]
    here = str(Path(__file__).parent)
    start = f"import sys; sys.path.insert(0, {here!r}); import floor; floor.record_without_stacks()"
    python = str(tree / ".venv/bin/python") if tree else sys.executable
    environment = {"PYTHONPATH": str(tree / "src")} if tree else {}
    return MeasuredChild(
        [python, "-c", start, parts, *options], directory.with_suffix(".log"), environment
    )


def _cpu_us_a_second(directory: Path, parts: Path | None = None) -> float:
    with mixed(WARM_S + WINDOW_S + 3):
        time.sleep(1)
        child = _start(directory, str(parts or ""))
        time.sleep(WARM_S)
        cpu_ns, started = _process_cpu_ns(child.pid), time.monotonic()
        time.sleep(WINDOW_S)
        cost = (_process_cpu_ns(child.pid) - cpu_ns) / 1e3 / (time.monotonic() - started)
        child.finish()
    return cost


def _process_cpu_ns(pid: int) -> int:
    """All threads, ended ones too (clock_getcpuclockid(3)); /proc/PID/stat counts in ticks, which
    is too coarse here.
    """
    return time.clock_gettime_ns((~pid << 3) | 2)


class _Parts:
    """CPU time of the calling thread inside wrapped methods, from the end of the warm-up on."""

    def __init__(self) -> None:
        self.spent: dict[str, list[int]] = {}
        self._from = time.monotonic() + WARM_S

    def wrap(self, owner: type, method: str, label: Callable[..., str]) -> None:
        wrapped = getattr(owner, method)

        def timed(*arguments: Any, **options: Any) -> Any:
            started_ns = time.thread_time_ns()
            try:
                return wrapped(*arguments, **options)
            finally:
                if time.monotonic() >= self._from:
                    count_and_ns = self.spent.setdefault(label(*arguments), [0, 0])
                    count_and_ns[0] += 1
                    count_and_ns[1] += time.thread_time_ns() - started_ns

        setattr(owner, method, timed)

    def write(self, path: Path) -> None:
        seconds = time.monotonic() - self._from
        parts = {
            name: (count / seconds, ns / 1e3 / seconds) for name, (count, ns) in self.spent.items()
        }
        count, us = parts[_LOOP]
        parts[_LOOP] = (
            count,
            us - sum(us for name, (_, us) in parts.items() if name not in (_LOOP, _DISK)),
        )
        path.write_text(json.dumps(parts))


def _no_sampler(settings: Any, *_: object) -> Any:
    from necroscope.recorder.node_sources import NodeSources
    from necroscope.recorder.own_cost import OwnCost

    own_cost = OwnCost(settings.hz, settings.budget_ratio)
    return NodeSources([own_cost], own_cost, None, [])


def record_without_stacks() -> None:
    """`necroscope` with the words behind the first, which is the file to write the parts to, or
    empty.
    """
    from necroscope.cli.main import main
    from necroscope.recorder import node_sources
    from necroscope.recorder.disk import Disk
    from necroscope.recorder.recorder import Recorder

    _, parts_file, *options = sys.argv
    node_sources._open_sampler = _no_sampler  # type: ignore[assignment]  # noqa: SLF001
    parts = _Parts()
    if parts_file:
        parts.wrap(Recorder, "_read", lambda _recorder, source, *_: str(source.name))
        parts.wrap(Recorder, "_turn", lambda *_: _LOOP)
        parts.wrap(Disk, "_do", lambda *_: _DISK)
    sys.argv = ["necroscope", *options]
    try:
        main()
    finally:
        if parts_file:
            parts.write(Path(parts_file))


def main() -> None:
    with tempfile.TemporaryDirectory() as work:
        rows = compare(Path(work), Path(sys.argv[1]).absolute(), TURNS)
    for row in [["without stacks", "CPU µs per second, median", "all turns"], *rows]:
        print("| " + " | ".join(row) + " |")


if __name__ == "__main__":
    main()
