"""Programs whose own speed tells what somebody else's recorder costs them: `python victims.py NAME
SECONDS CORE`.

A process of its own, so that it is small (a fork copies page tables) and pinned. It prints a line
for each tenth of a second: operations, seconds of CPU, seconds. CPU time holds the interrupts and
tracepoints that ran on its account, and leaves out whoever else ran on the core.
"""

import os
import resource
import socket
import struct
import sys
import time
from collections.abc import Callable
from functools import partial

_SLICE_S = 0.1


def packets() -> Callable[[], int]:
    """UDP packets over loopback, sent and received by one process: two system calls and a softirq
    each.
    """
    receiver, sender = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
    receiver.bind(("127.0.0.1", 0))
    sender.connect(receiver.getsockname())
    # A flood by somebody else can push a packet out of the core's backlog. Python's own timeout
    # would be a system call more.
    receiver.setsockopt(socket.SOL_SOCKET, socket.SO_RCVTIMEO, struct.pack("ll", 0, 100_000))

    def send_and_receive() -> int:
        for _ in range(200):
            sender.send(b"x" * 64)
            try:
                receiver.recv(64)
            except BlockingIOError:
                continue
        return 200

    return send_and_receive


def forks() -> Callable[[], int]:
    """Processes made and waited for."""

    def fork_and_wait() -> int:
        for _ in range(10):
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
        return 10

    return fork_and_wait


def syscalls() -> Callable[[], int]:
    """The cheapest system call there is, in a loop."""
    getppid = os.getppid

    def call() -> int:
        for _ in range(5000):
            getppid()
        return 5000

    return call


def switches(work: int = 0) -> Callable[[], int]:
    """A byte to and fro over pipes between two processes on one core: two switches each time, and
    so many rounds of an empty loop. The CPU time is that of one of them.
    """
    (there_read, there), (back_read, back) = os.pipe(), os.pipe()
    read, write, rounds = os.read, os.write, range(work)
    if os.fork() == 0:
        os.close(there)
        while read(there_read, 1):
            write(back, b"x")
        os._exit(0)

    def to_and_fro() -> int:
        for _ in range(500):
            write(there, b"x")
            for _ in rounds:
                pass
            read(back_read, 1)
        return 1000

    return to_and_fro


VICTIMS = {
    "loopback packets": packets,
    "forks": forks,
    "system calls": syscalls,
    "pipe switches": switches,
    # About 200,000 switches per second where those above are 430,000.
    "pipe switches and work": partial(switches, 500),
}


def _cpu_s() -> float:
    usages = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in usages)


def main() -> None:
    name, seconds, core = sys.argv[1], float(sys.argv[2]), int(sys.argv[3])
    os.sched_setaffinity(0, {core})
    operate = VICTIMS[name]()
    end_s = time.monotonic() + seconds
    while time.monotonic() < end_s:
        count, cpu_s, wall_s = 0, _cpu_s(), time.monotonic()
        while time.monotonic() < wall_s + _SLICE_S:
            count += operate()
        print(count, _cpu_s() - cpu_s, time.monotonic() - wall_s)


if __name__ == "__main__":
    main()
