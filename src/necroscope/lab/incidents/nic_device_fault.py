"""A network device is reset, and no core was held.

What it does: the driver's lines of a reset, in the words of one of its versions, appear while every
core runs as usual and every packet of the probe arrives in time: completions that the device never
reported, a keep-alive that did not come, or a queue that stood still although its poll was not
waiting. An ordinary program works meanwhile, as one always does.

Seen in the wild: reset reasons 1 (keep-alive), 3 (missing completions) and 10 (the kernel's own
watchdog with no poll due) of amzn-drivers; #134 and #147 show such logs. The same lines as in
`nic-reset`, but for what they say of the poll.

What must be seen: the reset, no softirq late, no napi thread waiting, no core held: the device, its
firmware or the host it is on is to act on, and CPU work is in vain. The log lines are emulated.
"""

import time

from necroscope.lab import ena_log
from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import KnownOrigin, Scenario, Truth, reached
from necroscope.lab.stage import Stage


def work_half_the_time(turn_s: float) -> None:
    """An ordinary load."""
    while True:
        until_s = time.monotonic() + turn_s
        while time.monotonic() < until_s:
            sum(range(1000))
        time.sleep(turn_s)


class NicDeviceFault(Scenario):
    name = "nic-device-fault"
    cause = "nic-device-fault"
    twin = "nic-reset"
    needs = ("ip", "/dev/kmsg")

    def prepare(self, stage: Stage) -> None:
        network = stage.make_network()
        self.device = ena_log.Device.invent(stage.random, network.far_device)
        stage.start(work_half_the_time, stage.random.uniform(0.02, 0.2), comm=stage.invent("app"))

    def provoke(self, stage: Stage) -> None:
        time.sleep(stage.remaining_s * stage.random.uniform(0.3, 0.6))
        for line in self._lines(stage):
            stage.write_kmsg(line, ena_log.ERROR)
        stage.hold()

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        delays = measured.delays()
        impact = {
            "log_lines_of": f"ENA {self.device.version}",
            "packet_delay_p99_ms": reached(
                "99th percentile of packet delays in ms", delays.p99_ms, at_most=50
            ),
            "packet_delay_max_ms": reached(
                "longest packet delay in ms", delays.max_ms, at_most=500
            ),
            "system_share": round(measured.shares(stage.core)["system"], 4),
        }
        return Truth(
            impact, origin=KnownOrigin("device", self.device.name, also=(self.device.pci,))
        )

    def _lines(self, stage: Stage) -> list[str]:
        random = stage.random
        recent_ms = random.randrange(4, 40)
        silence = ena_log.Silence(
            random.randrange(8), 5000, recent_ms, recent_ms, False, stage.core
        )
        kind = random.choice(("completions", "keep-alive", "paused"))
        if kind == "completions":
            return self.device.missing_completions(silence, random.randrange(129, 700))
        return (
            self.device.keep_alive_lost(random.randrange(6004, 7000))
            if kind == "keep-alive"
            else self.device.paused(silence)
        )
