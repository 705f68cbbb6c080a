"""What one sample stands for: measured where a core was busy, whatever else was the matter."""

from collections.abc import Collection
from dataclasses import replace

import pytest
from tests.drawn_node import HZ, NS, DrawnNode, Tables, at, drawn_node

from necroscope.analysis.detect import detect
from necroscope.analysis.node import Node

# A machine that stands still for most of the time, and one core that was busy for a while long before.
PICTURE = """
    core 0:  ....bbbb....................................
    core 1:  ............................................
    b: user  trainer[9]  /  main
"""


class OneAQuietSecond(DrawnNode):
    """A core that rests is sampled when it wakes, which is once a second here."""

    def samples(self, from_ns: int, to_ns: int, cpus: Collection[int] | None = None) -> Tables:
        found = super().samples(from_ns, to_ns, cpus)
        kept = [row["comm"] == "trainer" or (row["time"] - at(0)) % NS == row["cpu"] for row in found.samples.to_pylist()]
        return replace(found, samples=found.samples.filter(kept))


def test_a_machine_that_stands_still_does_not_stretch_the_period() -> None:
    picture = drawn_node(PICTURE)
    drawn = OneAQuietSecond(picture.cores, picture.works)
    for second in range(1, 45):
        drawn.add("pressure", second, resource="io", some_ns=10**9 if second > 14 else 0, full_ns=0)
    node = Node(drawn, (at(0), at(44)))
    node.episodes = detect(node)
    assert "io_blocked" in {episode.kind.value for episode in node.episodes}
    assert node.period_s == pytest.approx(1 / HZ, rel=0.05)
