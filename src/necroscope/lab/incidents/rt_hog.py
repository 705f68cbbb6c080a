"""A real-time thread that never sleeps, on the core whose packets a kernel thread must take.

What it does: the network device is polled by a kernel thread of its own (threaded NAPI), an
ordinary thread that is bound to one core. On the same core a process of the scheduling class FIFO
runs without ever waiting. The scheduler obeys: all ordinary threads of that core get the twentieth
part of each second that real-time throttling leaves them, and packets wait for almost a second.

Seen in the wild: openshift's performance-addon-operators (pull request 481) takes care that
ksoftirqd is not starved by real-time workloads; corosync #520 has real-time threads stand in the
way of the rest of the machine. With softirqs at interrupt exit packets would pass all the same; it
is the thread that makes the difference.

What must be seen: one process of class FIFO on the core nearly all the time, the napi thread
runnable and not running for most of it, packets late by hundreds of milliseconds; softirq counters
and ksoftirqd tell nothing.
"""

from necroscope.lab.incidents.userspace_hog import spin
from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import KnownCulprit, KnownOrigin, Scenario, Truth, reached
from necroscope.lab.stage import Stage
from necroscope.lab.threaded_poll import poll_by_thread


class RealTimeHog(Scenario):
    name = "rt-hog"
    cause = "rt-hog"
    twin = "fifo-spinner-harmless"
    needs = ("ip",)

    def prepare(self, stage: Stage) -> None:
        self.poller = poll_by_thread(stage, stage.make_network())

    def provoke(self, stage: Stage) -> None:
        step, priority = stage.random.randrange(1, 1000, 2), stage.random.randrange(2, 50)
        policy = stage.random.choice(("fifo", "rr"))
        self.hog = stage.start(
            spin, step, comm=stage.invent("app"), cpu=stage.core, policy=policy, priority=priority
        )
        stage.hold(self.hog)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        _, waited_s = measured.schedstat(self.poller)
        impact = {
            "user_share": reached(
                "user share of the core", measured.shares(stage.core)["user"], at_least=0.7
            ),
            "poller_wait_share": reached(
                "share of time the poll waited", waited_s / stage.seconds, at_least=0.3
            ),
            "packet_delay_p99_ms": reached(
                "99th percentile of packet delays in ms", measured.delays().p99_ms, at_least=300
            ),
            "packet_delay_baseline_p99_ms": measured.delays(measured.baseline).p99_ms,
        }
        return Truth(
            impact,
            core=stage.core,
            mode="user",
            culprit=KnownCulprit(self.hog.comm, self.hog.pid),
            origin=KnownOrigin("process", self.hog.comm),
        )
