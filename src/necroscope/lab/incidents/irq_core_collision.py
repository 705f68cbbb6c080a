"""A system call holds, for seconds, the core on which a device is polled.

What it does: a network device is polled by a kernel thread bound to one core (threaded NAPI). An
agent on the same core reads /proc/timer_list every few seconds, as a debugging aid that was never
switched off, while an application keeps thousands of timers: the kernel writes that file in time
that grows with the square of the number of timers and, not preempting itself, gives the core to
nobody before the call returns. The poll is runnable all that time and does not run.

Seen in the wild: Amazon's ENA best practices name it (look for long kernel sections on cores that
serve a queue); GitHub's "Debugging network stalls on Kubernetes" (2019) and Pinterest's resets
(2026) were of this kind with another walk. Up to Linux 6.4 a runnable ksoftirqd was enough to stop
softirqs; since 6.5 they run at each interrupt's exit, and it takes a poll by a thread, as here.

What must be seen: the core at 100 % system (not softirq) in one process and one path for a second
and more at a time, the napi thread of that core runnable and not running in the same moments,
packets late by as much; no softirq is frozen.
"""

from necroscope.lab import timer_list
from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import KnownCulprit, KnownOrigin, Scenario, Truth, reached
from necroscope.lab.stage import Stage
from necroscope.lab.threaded_poll import poll_by_thread


class IrqCoreCollision(Scenario):
    name = "irq-core-collision"
    cause = "irq-core-collision"
    twin = "softirq-storm"
    needs = ("ip", timer_list.PATH)

    def prepare(self, stage: Stage) -> None:
        self.poller = poll_by_thread(stage, stage.make_network())
        count = stage.random.randrange(5000, 6500)
        self.holder = stage.start(
            timer_list.hold_timers,
            count,
            comm=stage.invent("app"),
            cpu=stage.core,
            files=count + 100,
        )

    def provoke(self, stage: Stage) -> None:
        pauses_s = [stage.random.uniform(0.5, 2.0) for _ in range(5)]
        self.reader = stage.start(
            timer_list.read_again_and_again, pauses_s, comm=stage.invent("agent"), cpu=stage.core
        )
        stage.hold(self.holder, self.reader)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        peak = measured.peak_share(stage.core, ("system",), seconds=0.8)
        _, waited_s = measured.schedstat(self.poller)
        impact = {
            "system_peak_share": reached(
                "highest system share of the core over 0.8 s", peak, at_least=0.85
            ),
            "poller_wait_s": reached(
                "seconds the poll waited", waited_s, at_least=0.1 * stage.seconds
            ),
            "packet_delay_max_ms": reached(
                "longest packet delay in ms", measured.delays().max_ms, at_least=500
            ),
            "packet_delay_baseline_p99_ms": measured.delays(measured.baseline).p99_ms,
        }
        return Truth(
            impact,
            core=stage.core,
            mode="system",
            culprit=KnownCulprit(self.reader.comm, self.reader.pid),
            origin=KnownOrigin("process", self.reader.comm, also=(self.holder.comm,)),
        )
