"""What one sample stands for: measured where a core was busy, whatever else was the matter."""

from collections.abc import Collection
from dataclasses import replace

import pyarrow as pa
import pytest
from tests.drawn_node import HZ, NS, DrawnNode, Tables, at, drawn_node

from necroscope.analysis.detect import detect
from necroscope.analysis.engine import diagnose
from necroscope.analysis.node import Node

# A machine that stands still for most of the time, and one core that was busy for a while long
# before.
PICTURE = """
    core 0:  ....bbbb....................................
    core 1:  ............................................
    b: user  trainer[9]  /  main
"""


class OneAQuietSecond(DrawnNode):
    """A core that rests is sampled when it wakes, which is once per second here."""

    def samples(self, from_ns: int, to_ns: int, cpus: Collection[int] | None = None) -> Tables:
        found = super().samples(from_ns, to_ns, cpus)
        kept = [
            row["comm"] == "trainer" or (row["time"] - at(0)) % NS == row["cpu"]
            for row in found.samples.to_pylist()
        ]
        return replace(found, samples=found.samples.filter(pa.array(kept, pa.bool_())))


def test_a_machine_that_stands_still_does_not_stretch_the_period() -> None:
    picture = drawn_node(PICTURE)
    drawn = OneAQuietSecond(picture.cores, picture.works)
    for second in range(1, 45):
        drawn.add("pressure", second, resource="io", some_ns=10**9 if second > 14 else 0, full_ns=0)
    node = Node(drawn, (at(0), at(44)))
    node.episodes = detect(node)
    assert "io_blocked" in {episode.kind.value for episode in node.episodes}
    assert node.period_s == pytest.approx(1 / HZ, rel=0.05)


RESTING = "kworker/0:1[5]  /  > ret_from_fork, worker_thread, vmstat_update"


def capture(core: str) -> DrawnNode:
    """Samples alone: `q` is a core that rests, `b` one that is busy."""
    picture = drawn_node(
        f"core 0: {core}\ncore 1: {'.' * len(core)}\nb: user  trainer[9]  /  main\nq: idle "
        f" {RESTING}"
    )
    return OneAQuietSecond(picture.cores, picture.works).forget("cores", "softirqs")


def test_a_capture_that_begins_at_rest_has_the_period_of_its_busiest_second() -> None:
    drawn = capture("q" * 40 + "b" * 10 + "q" * 10)
    rows = Node(drawn, (at(0), at(60))).columns("cores").of_core(0)
    assert rows["system_ns"][:30].max() <= 0.05 * NS
    assert rows["user_ns"][42:48].min() >= 0.9 * NS
    assert not diagnose(drawn).incidents


def test_a_capture_of_a_machine_that_rests_has_no_held_core() -> None:
    drawn = capture("q" * 60)
    assert Node(drawn, (at(0), at(60))).columns("cores")["idle_ns"].min() >= 0.8 * NS
    assert not diagnose(drawn).incidents


def test_what_the_recorder_wrote_goes_before_what_is_measured() -> None:
    drawn = drawn_node(PICTURE).add("sampling", -100, period_ns=7_000_000)
    assert Node(drawn, (at(0), at(44))).period_s == 0.007
    drawn.add("sampling", 40, period_ns=50_000_000)
    assert Node(drawn, (at(0), at(44))).period_s == 0.007
    assert Node(drawn, (at(30), at(400))).period_s == 0.05
