"""Softirqs switched off on one core, a second and more at a time.

What it does: a process enters the kernel on one core and stays there with bottom halves disabled,
again and again for one to two seconds. Hard interrupts still come, so that the clock ticks and the
core looks alive; but no softirq runs: packets that the core should take wait in its queue, timers
do not fire, RCU does not move on. The loop is a BPF test run, around which the kernel itself holds
local_bh_disable(): the state of a driver that keeps a lock of the kind spin_lock_bh too long.

Seen in the wild: stalls of the network with no packet lost, in amzn-drivers #220 (21 s without
NAPI; not the driver's fault), and wherever code walks a long list under such a lock. ksoftirqd
shows nothing: it is not even woken.

What must be seen: on that core every softirq counter frozen while the local timer advances,
softirqs that wait a second and more between being raised and being run, packets late by as much,
and the process that is in the kernel meanwhile.
"""

import time

from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import KnownCulprit, KnownOrigin, Scenario, Truth, reached
from necroscope.lab.softirq_hold import SoftirqHold
from necroscope.lab.stage import Stage


def black_out(lengths_s: list[float], pause_s: float) -> None:
    """Over and over, as long as it lives."""
    with SoftirqHold() as softirqs:
        while True:
            for length_s in lengths_s:
                softirqs.hold(length_s)
                time.sleep(pause_s)


class SoftirqBlackout(Scenario):
    name = "softirq-blackout"
    cause = "softirq-blackout"
    twin = "irq-core-collision"
    needs = ("ip",)

    def prepare(self, stage: Stage) -> None:
        stage.make_network()

    def provoke(self, stage: Stage) -> None:
        lengths_s = [stage.random.uniform(1.0, 2.0) for _ in range(5)]
        pause_s = stage.random.uniform(0.5, 1.5)
        self.holder = stage.start(
            black_out, lengths_s, pause_s, comm=stage.invent("agent"), cpu=stage.core
        )
        stage.hold(self.holder)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        freeze_s = measured.longest_softirq_freeze_s(stage.core)
        impact = {
            "longest_softirq_freeze_s": reached(
                "longest softirq freeze in seconds", freeze_s, at_least=0.8
            ),
            "packet_delay_max_ms": reached(
                "longest packet delay in ms", measured.delays().max_ms, at_least=800
            ),
            "packet_delay_baseline_p99_ms": measured.delays(measured.baseline).p99_ms,
            "system_share": round(measured.shares(stage.core)["system"], 4),
        }
        return Truth(
            impact,
            core=stage.core,
            mode="system",
            culprit=KnownCulprit(self.holder.comm, self.holder.pid),
            origin=KnownOrigin("process", self.holder.comm),
        )
