"""A tracing agent's BPF program, which slows down every other process.

What it does: a security or observability agent hangs a program on the entry of every system call of
the machine. The program looks up a list of rules in a hash map, one by one, each time. The agent
sleeps; an application that makes many cheap system calls gets slower by a multiple, and the time is
booked as its own system time.

Seen in the wild: falco #1710, #2475 and #3630, tetragon #3428, cilium #27661, datadog-agent's pull
request 25330: high system time of applications, cured by narrower hooks; limiting the agent's own
CPU changes nothing.

What must be seen: system time in processes that have nothing to do with the agent, spread over
their system calls, with `bpf_prog_TAG_NAME` and map functions in the path below the tracepoint; the
agent itself nearly idle. The program is to act on.
"""

import os
import time

from necroscope.lab import raw_tracepoint
from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import KnownCulprit, KnownOrigin, Scenario, Truth, reached
from necroscope.lab.stage import Stage
from necroscope.sources.perf.bpf_assembler import MAP_LOOKUP, R0, R1, R2, R6, R10, Program

_NAMES = (
    "sys_enter",
    "raw_sys_enter",
    "handle_sys",
    "on_syscall",
    "trace_enter",
    "syscall_probe",
    "filter_rules",
    "audit_entry",
)


def watch_system_calls(program_name: str, rules: int) -> None:
    """Attach it, and sleep as long as it lives."""
    descriptors = [raw_tracepoint.attach(_look_up_rules(rules), program_name, "sys_enter")]
    while descriptors:
        time.sleep(1)


def make_system_calls(path: str) -> None:
    """An application that asks small things of the kernel all the time; it counts how often into a
    file.
    """
    count = 0
    with open(f"{path}.count", "w", encoding="ascii") as counted:
        while True:
            for _ in range(500):
                os.stat(path)
            count += 500
            os.pwrite(counted.fileno(), f"{count:20d}\n".encode(), 0)


def _look_up_rules(rules: int) -> bytes:
    """for i in range(rules): if map[i]: stop. The verifier follows every round, so that it is
    bounded.
    """
    map_descriptor = raw_tracepoint.make_hash_map(key_bytes=4, value_bytes=8, entries=1024)
    program = Program()
    program.move_constant(R6, 0)
    program.label("next")
    program.store64(R10, -8, R6)
    program.load_map(R1, map_descriptor)
    program.move(R2, R10)
    program.add_constant(R2, -8)
    program.call(MAP_LOOKUP)
    program.jump_if_not_equal(R0, 0, "out")
    program.add_constant(R6, 1)
    program.jump_if_not_equal(R6, rules, "next")
    program.label("out")
    program.move_constant(R0, 0)
    program.leave()
    return program.code()


class EbpfOverhead(Scenario):
    name = "ebpf-overhead"
    cause = "ebpf-overhead"
    twin = "spinlock-contention"

    def prepare(self, stage: Stage) -> None:
        path = stage.scratch / stage.invent("app")
        path.write_text("")
        self.application = stage.start(
            make_system_calls, str(path), comm=stage.invent("app"), cpu=stage.core
        )
        self.counted = stage.watch(f"{path}.count")
        stage.watch_task(self.application.pid)

    def provoke(self, stage: Stage) -> None:
        self.program = stage.random.choice(_NAMES)
        rules = stage.random.randrange(300, 600)
        self.agent = stage.start(
            watch_system_calls,
            self.program,
            rules,
            comm=stage.invent("agent"),
            cpu=stage.other_cores,
        )
        stage.watch_task(self.agent.pid)
        stage.hold(self.agent, self.application)

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        before = self._calls_per_cpu_s(measured, measured.baseline)
        during = max(1.0, self._calls_per_cpu_s(measured, measured.incident))
        impact = {
            "calls_per_cpu_s_baseline": reached(
                "system calls in a second of CPU time before", before, at_least=10_000
            ),
            "calls_per_cpu_s": round(during),
            "dearer": reached(
                "times as much CPU time a call as before", before / during, at_least=2.0
            ),
            "system_share": reached(
                "system share of the core", measured.shares(stage.core)["system"], at_least=0.25
            ),
            "agent_cpu_s": reached(
                "CPU seconds of the agent itself",
                measured.schedstat(self.agent.pid)[0],
                at_most=0.1 * stage.seconds,
            ),
        }
        return Truth(
            impact,
            core=stage.core,
            mode="system",
            culprit=KnownCulprit(
                self.application.comm, self.application.pid, also=(self.agent.comm,)
            ),
            origin=KnownOrigin(
                "process", self.agent.comm, also=(self.program, f"BPF program {self.program}")
            ),
        )

    def _calls_per_cpu_s(self, measured: Measurements, window: tuple[int, int]) -> float:
        """By the application's own CPU time: what others take of its core is not the program's
        doing.
        """
        seen = [int(text) for _, text in measured.texts(self.counted, window) if text.strip()]
        ran_s, _ = measured.schedstat(self.application.pid, window)
        return (seen[-1] - seen[0]) / ran_s if len(seen) >= 2 and ran_s else 0.0
