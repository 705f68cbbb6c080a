"""Handlers that hold a core inside softirqs: packets, few enough, each of which passes something
long.
"""

import time
from abc import abstractmethod
from typing import ClassVar

from necroscope.lab.measured import Measurements
from necroscope.lab.network import FAR_ADDRESS, NEAR_ADDRESS
from necroscope.lab.packets import flood
from necroscope.lab.scenario import KnownOrigin, Scenario, Truth, reached, softirq_culprit
from necroscope.lab.stage import Stage

_EVERYBODY = "ff:ff:ff:ff:ff:ff"
_SETTLE_S = 1.5


class HandlerHold(Scenario):
    """Packets from one namespace to another, received on the chosen core. `handlers` are kernel
    functions of which any is the right name for what holds it.
    """

    cause: ClassVar[str | None] = "interrupt-handler"
    handlers: ClassVar[tuple[str, ...]] = ()
    packets_per_s: ClassVar[int]
    least_share: ClassVar[float] = 0.6
    seconds: ClassVar[int] = 20
    needs: ClassVar[tuple[str, ...]] = ("ip",)

    def prepare(self, stage: Stage) -> None:
        self.network = stage.make_network(gap_s=None)
        self.port = stage.random.randrange(2000, 9000)
        self.owner = self.start_owner(stage)
        # What packets pass is there before they come.
        time.sleep(_SETTLE_S)

    def provoke(self, stage: Stage) -> None:
        rate = self.packets_per_s * stage.random.uniform(0.95, 1.05)
        size_bytes = stage.random.randrange(32, 200)
        self.sender = stage.start(
            flood,
            self.network.near_device,
            NEAR_ADDRESS,
            FAR_ADDRESS,
            _EVERYBODY,
            self.port,
            size_bytes,
            rate,
            cpu=stage.other_cores,
            netns=self.network.near,
        )
        stage.hold(self.sender)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        softnet = measured.softnet(stage.core)
        impact = {
            "softirq_share": reached(
                "softirq share of the core",
                measured.shares(stage.core)["softirq"],
                at_least=self.least_share,
            ),
            "packets_per_s": round(softnet["processed"] / stage.seconds, 1),
            "dropped": softnet["dropped"],
        }
        return Truth(
            impact,
            core=stage.core,
            mode="softirq",
            culprit=softirq_culprit(stage.core, self.sender.comm, self.owner),
            origin=KnownOrigin("process", self.owner, also=(self.sender.comm,)),
            handlers=self.handlers,
        )

    @abstractmethod
    def start_owner(self, stage: Stage) -> str:
        """Makes what each packet has to pass; the name of the program that has it."""


class LittleToPass:
    """The twin: as many packets, and next to nothing that each has to pass."""

    cause: ClassVar[str | None] = None
    least_packets_per_s: ClassVar[int] = 2_000

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        share = measured.shares(stage.core)["softirq"]
        packets = measured.softnet(stage.core)["processed"] / stage.seconds
        return Truth(
            {
                "softirq_share": reached("softirq share of the core", share, at_most=0.5),
                "packets_per_s": reached(
                    "packets per second", packets, at_least=self.least_packets_per_s
                ),
            }
        )
