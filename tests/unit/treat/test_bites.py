"""Bites grow while they are easy and shrink before they are too long."""

from pathlib import Path

from necroscope.treat.bites import Bites, network_cores, network_irqs

MS = 1_000_000


class Core:
    """A clock that work moves on."""

    def __init__(self) -> None:
        self.now_ns = 0
        self.paused_s = 0.0

    def work(self, length_ns: int) -> None:
        self.now_ns += length_ns

    def pause(self, seconds: float) -> None:
        self.paused_s += seconds


def test_a_bite_grows_while_it_is_easy_and_shrinks_when_it_comes_close_to_the_budget() -> None:
    core = Core()
    bites = Bites(50 * MS, clock_ns=lambda: core.now_ns, pause=core.pause)
    first = bites.pages
    bites.take(core.work, MS)
    assert bites.pages == 2 * first
    bites.take(core.work, 20 * MS)
    assert bites.pages == first
    bites.take(core.work, 5 * MS)
    assert bites.pages == first
    assert (bites.longest_ns, bites.count) == (20 * MS, 3)


def test_the_core_is_given_away_for_as_long_as_a_bite_took() -> None:
    core = Core()
    bites = Bites(50 * MS, clock_ns=lambda: core.now_ns, pause=core.pause)
    bites.take(core.work, 7 * MS)
    assert core.paused_s == 0.007


def test_cores_of_network_queues_are_told_from_those_of_other_devices(tmp_path: Path) -> None:
    (tmp_path / "sys/class/net/eth0").mkdir(parents=True)
    (tmp_path / "proc/irq/38").mkdir(parents=True)
    (tmp_path / "proc/irq/39").mkdir(parents=True)
    (tmp_path / "proc/interrupts").write_text(
        "           CPU0       CPU1\n"
        " 38:          0      73719  PCI-MSI 1-edge      eth0-Tx-Rx-0\n"
        " 39:          9          0  PCI-MSI 1-edge      nvme0q1\n"
    )
    (tmp_path / "proc/irq/38/smp_affinity_list").write_text("1\n")
    (tmp_path / "proc/irq/39/smp_affinity_list").write_text("0\n")
    assert network_irqs(tmp_path) == {"38": {1}}
    assert network_cores(tmp_path) == {1}


def test_a_node_that_tells_no_interrupts_has_no_network_cores(tmp_path: Path) -> None:
    assert network_cores(tmp_path) == set()
