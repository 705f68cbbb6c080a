"""A core that goes and comes back: /proc/stat below a made-up root says so, the rings are the
kernel's own.

The machine's cores are left alone. What a ring does when its core is really unplugged, a hang-up
that poll reports forever, is provoked by an event on a process that ends.
"""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.integration.in_process import recorder_of, run_until_done, sampler_of
from tests.synthetic_root import make_root, write_files

from necroscope.model.units import NS_PER_S
from necroscope.recorder.memory import MemorySegment
from necroscope.sources.perf import rings

pytestmark = [
    pytest.mark.kernel,
    pytest.mark.root,
    pytest.mark.skipif((os.cpu_count() or 1) < 2, reason="needs two cores to lose one"),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    root = make_root(tmp_path / "root", cpus=2, queues=2)
    write_files(root, {"sys/devices/system/cpu/possible": f"0-{(os.cpu_count() or 1) - 1}\n"})
    return root


def set_cpus(root: Path, cpus: list[int], step: int) -> None:
    make_root(root, cpus=2, step=step, queues=2)
    stat = root / "proc/stat"
    lines = stat.read_text().splitlines(keepends=True)
    stat.write_text(
        "".join(
            line for line in lines if line[:3] != "cpu" or line[3] == " " or int(line[3:5]) in cpus
        )
    )


def causes_of(memory: MemorySegment, table: str) -> list[tuple[str, int]]:
    return [(row[3], row[4]) for row in memory.rows("gaps", 0, 1 << 62) if row[2] == table]


def test_the_ring_of_a_lost_core_is_closed_and_opened_again(root, leaks):
    memory = MemorySegment(600 * NS_PER_S)
    seen: list[frozenset[int]] = []

    def wait_for(online: list[int]) -> Callable[[int], bool]:
        def step(ticks: int) -> bool:
            set_cpus(root, online, ticks)
            seen.append(sampler_of(sources).rings.cpus)
            return seen[-1] == frozenset(online)

        return step

    def sampled_again(ticks: int) -> bool:
        set_cpus(root, [0, 1], ticks)
        return any(
            sampled.cpu == 1 and sampled.time_ns > gap_end()
            for sampled in memory.samples_between(0, 1 << 62)
        )

    def gap_end() -> int:
        return max(
            (row[1] for row in memory.rows("gaps", 0, 1 << 62) if row[2] == "cores"),
            default=1 << 62,
        )

    with subprocess.Popen(
        [sys.executable, "-c", "import os\nos.sched_setaffinity(0, {1})\nwhile True: pass"]
    ) as spinner:
        try:
            with recorder_of(root, memory) as (recorder, sources):
                run_until_done(
                    recorder, [wait_for([0, 1]), wait_for([0]), wait_for([0, 1]), sampled_again]
                )
        finally:
            spinner.kill()
    assert frozenset({0}) in seen
    for table in ("cores", "samples"):
        assert causes_of(memory, table) == [("cpu 1 went offline", 1), ("cpu 1 was offline", 1)]
    assert leaks() == []


def test_a_ring_that_hangs_up_is_no_busy_loop_and_is_opened_again(root, monkeypatch, leaks):
    memory = MemorySegment(600 * NS_PER_S)
    with subprocess.Popen(["sleep", "60"]) as victim:
        opened = rings.open_event
        # The first event of core 1 lives and dies with a process.
        targets = {1: [victim.pid]}
        monkeypatch.setattr(
            rings,
            "open_event",
            lambda attr, cpu: (
                opened(attr, pid=targets[cpu].pop(), cpu=cpu)
                if targets.get(cpu)
                else opened(attr, cpu=cpu)
            ),
        )
        reads = 0

        def hang_up(ticks: int) -> bool:
            set_cpus(root, [0, 1], ticks)
            victim.kill()
            victim.wait()
            return True

        def is_open_again(ticks: int) -> bool:
            set_cpus(root, [0, 1], ticks)
            return ticks > 20 and len(causes_of(memory, "samples")) == 2

        with recorder_of(root, memory) as (recorder, sources):
            sampler = sampler_of(sources)
            read = sampler.read

            def counted(now):
                nonlocal reads
                reads += 1
                return read(now)

            sampler.read = counted
            ticks = run_until_done(recorder, [hang_up, is_open_again])
    assert reads < ticks + 20, "a hang-up wakes the loop once, not for ever"
    assert causes_of(memory, "samples") == [("cpu 1 went offline", 1), ("cpu 1 was offline", 1)]
    assert leaks() == []
