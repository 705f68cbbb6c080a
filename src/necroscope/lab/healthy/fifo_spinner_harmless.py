"""A real-time thread that never sleeps, and no other task needs its core.

What it does: a process of the scheduling class FIFO runs without ever waiting on one core. No
device is polled by a thread there: packets are taken by softirqs when an interrupt returns, which
no priority of a task can hold up. Other processes have other cores.

Seen in the wild: polling programs on cores set aside for them (packet processing, trading, audio),
which run so by design. ksoftirqd of the core shows a run delay of a second and more, which is a
false alarm: nothing waits for it.

What must be seen: nothing wrong. That a core is full and its scheduling class is FIFO is not harm;
somebody must wait.
"""

from necroscope.lab.incidents.userspace_hog import spin
from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import Scenario, Truth, reached
from necroscope.lab.stage import Stage


class FifoSpinnerHarmless(Scenario):
    name = "fifo-spinner-harmless"
    twin = "rt-hog"
    # One thread on one core in user space is what it is; that it harms somebody would be wrong.
    tolerates = ("userspace-hog",)
    needs = ("ip",)

    def prepare(self, stage: Stage) -> None:
        stage.make_network()

    def provoke(self, stage: Stage) -> None:
        step, priority = stage.random.randrange(1, 1000, 2), stage.random.randrange(2, 50)
        policy = stage.random.choice(("fifo", "rr"))
        stage.hold(
            stage.start(
                spin,
                step,
                comm=stage.invent("app"),
                cpu=stage.core,
                policy=policy,
                priority=priority,
            )
        )

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        delays = measured.delays()
        return Truth(
            {
                "user_share": reached(
                    "user share of the core", measured.shares(stage.core)["user"], at_least=0.7
                ),
                "packet_delay_p99_ms": reached(
                    "99th percentile of packet delays in ms", delays.p99_ms, at_most=50
                ),
                "packet_delay_max_ms": delays.max_ms,
            }
        )
