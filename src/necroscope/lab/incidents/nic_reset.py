"""A driver resets its network device because its poll did not run; the device is fine.

What it does: an agent's read of /proc/timer_list holds a core in the kernel for seconds, as in
`irq-core-collision` but longer. The thread that polls the network device on that core is runnable
and does not run. A watchdog in the place of the driver looks at that very thread ten times per
second, and when it has been runnable for longer than the driver's deadline without a turn, it
writes what the driver of Amazon's devices (ENA) would write, in the words of one of its versions,
with the times and the core that it measured.

Seen in the wild: Pinterest (2026): "napi handler hasn't been called for a long time but is
scheduled", job failures for three months, in the end a walk over 68,680 dead memory cgroups;
amzn-drivers #220 and #336, awslabs/amazon-eks-ami #454. The line asks to look at the CPU, and most
looked at the device.

What must be seen: the reset, joined to the core it names or else to the core whose poll waited, and
there the same as in `irq-core-collision`: system time in one call of one process all through the
wait. Only the log lines are emulated.
"""

import os
import time
from pathlib import Path

from necroscope.lab import ena_log, timer_list
from necroscope.lab.measured import Measurements
from necroscope.lab.network import Network
from necroscope.lab.scenario import (
    CannotProvoke,
    KnownCulprit,
    KnownOrigin,
    Scenario,
    Truth,
    reached,
)
from necroscope.lab.stage import Stage
from necroscope.lab.threaded_poll import poll_by_thread

_FIRST_TIMERS = 2500
_MOST_TIMERS = 16_000
# The hold, in deadlines. It must stay below eight seconds even where the last measurement was off
# by a third.
_AIM = 1.4
# The time of a read grows with a power of the number of timers: two by the kernel's work, up to
# three where they leave the cache.
_POWER = 2.6
_CALIBRATION_S = 60.0


def calibrate(result: str, aim_s: float) -> None:
    """How many timers make a read about as long as aimed at: more of them in small steps, up to
    half of it.
    """
    held = timer_list.arm(_FIRST_TIMERS)
    while (took_s := timer_list.read()) < 0.45 * aim_s:
        held += timer_list.arm(int(len(held) * min(0.5, (aim_s / took_s) ** (1 / _POWER) - 1)))
    Path(result).write_text(str(int(len(held) * (aim_s / took_s) ** (1 / _POWER))))


def read_slowly(first_count: int, aim_s: float, pause_s: float) -> None:
    """Each read as long as aimed at: timers are armed or left out as the last read was too short or
    too long.
    """
    count, held = first_count, timer_list.arm(first_count)
    while True:
        took_s = timer_list.read()
        time.sleep(pause_s)
        count = min(_MOST_TIMERS, int(count * (aim_s / took_s) ** (1 / _POWER)))
        while len(held) > count:
            os.close(held.pop())
        held += timer_list.arm(count - len(held))


def guard(device: list[str], poller: int, core: int, threshold_ms: int, log: str) -> None:
    """The driver's watchdog: a poll that is due and has had no turn for longer than the
    threshold.
    """
    driver = ena_log.Device(*device)
    turns, since_s, is_written = _turns(poller), time.monotonic(), False
    while True:
        time.sleep(0.1)
        now_s = time.monotonic()
        if (latest := _turns(poller)) != turns or not _is_runnable(poller):
            turns, since_s, is_written = latest, now_s, False
        elif (silent_ms := int((now_s - since_s) * 1000)) > threshold_ms and not is_written:
            silence = ena_log.Silence(0, threshold_ms, silent_ms, silent_ms + 4, True, core)
            ena_log.write(driver.paused(silence))
            Path(log).write_text(
                f"resets {_number(log) + 1}\nsilent_ms {max(silent_ms, _number(log, 1))}\n"
            )
            is_written = True


def _turns(pid: int) -> str:
    return Path(f"/proc/{pid}/schedstat").read_text().split()[2]


def _is_runnable(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "R"


def _number(log: str, line: int = 0) -> int:
    return int(Path(log).read_text().splitlines()[line].split()[1]) if Path(log).exists() else 0


class NicReset(Scenario):
    name = "nic-reset"
    cause = "irq-core-collision"
    twin = "nic-device-fault"
    seconds = 30
    needs = ("ip", timer_list.PATH, "/dev/kmsg")

    def prepare(self, stage: Stage) -> None:
        network = stage.make_network()
        self.poller = poll_by_thread(stage, network)
        # Five seconds by default; a device may ask for less (hardware hints), and so does this one,
        # to stay well below eight.
        self.threshold_ms = stage.random.choice((3000, 4000))
        self.aim_s = self.threshold_ms / 1000 * _AIM
        self.count = self._timers_for(stage, self.aim_s)
        self._start_guard(stage, network)

    def provoke(self, stage: Stage) -> None:
        pause_s = stage.random.uniform(1.0, 2.0)
        arguments = (self.count, self.aim_s, pause_s)
        comm, files = stage.invent("agent"), _MOST_TIMERS + 100
        self.reader = stage.start(read_slowly, *arguments, comm=comm, cpu=stage.core, files=files)
        stage.hold(self.reader, self.guard)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        peak = measured.peak_share(stage.core, ("system",), seconds=3.0)
        resets = measured.highest(self.log, "resets")
        impact = {
            "resets": reached("resets", resets, at_least=1),
            "poll_silent_ms": measured.highest(self.log, "silent_ms"),
            "system_peak_share": reached(
                "highest system share of the core over 3 s", peak, at_least=0.85
            ),
            "packet_delay_max_ms": reached(
                "longest packet delay in ms",
                measured.delays().max_ms,
                at_least=0.8 * self.threshold_ms,
            ),
            "packet_delay_baseline_p99_ms": measured.delays(measured.baseline).p99_ms,
        }
        return Truth(
            impact,
            core=stage.core,
            mode="system",
            culprit=KnownCulprit(self.reader.comm, self.reader.pid),
            origin=KnownOrigin("process", self.reader.comm),
        )

    def _timers_for(self, stage: Stage, aim_s: float) -> int:
        result, comm = stage.scratch / "calibration", stage.invent("tool")
        actor = stage.start(
            calibrate, str(result), aim_s, comm=comm, cpu=stage.core, files=_MOST_TIMERS + 100
        )
        if actor.wait(_CALIBRATION_S):
            raise CannotProvoke(f"the length of a read cannot be measured: {stage.output()}")
        needed = int(result.read_text())
        if needed > _MOST_TIMERS:
            raise CannotProvoke(f"it would take {needed} timers, and {_MOST_TIMERS} are allowed")
        return needed

    def _start_guard(self, stage: Stage, network: Network) -> None:
        device = ena_log.Device.invent(stage.random, network.far_device)
        self.log = stage.watch(stage.scratch / "resets")
        arguments = (
            [device.name, device.pci, device.version],
            self.poller,
            stage.core,
            self.threshold_ms,
            self.log,
        )
        comm, cores = stage.invent("agent"), stage.other_cores
        self.guard = stage.start(
            guard, *arguments, comm=comm, cpu=cores, policy="fifo", priority=55
        )
        stage.emulate(
            "the driver's log lines, written when the poll's measured silence passed its deadline"
        )
