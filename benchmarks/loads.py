"""Loads to record under: a mix, an exec storm, and three victims whose own speed tells what the recorder costs them."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

_MIXED = """
end=$((SECONDS + {seconds}))
while [ $SECONDS -lt $end ]; do
  {python} -c 'import json
for i in range(300): json.loads(json.dumps({{str(k): [k, str(k)] for k in range(1500)}}))'
  find /usr/lib -name "*.so*" > /dev/null
  head -c 12000000 /dev/zero | gzip -6 > /dev/null
  seq 150000 | sort -R | sort -n > /dev/null
  grep -r -c include /usr/include/linux > /dev/null
  head -c 6000000 /dev/urandom | sha256sum > /dev/null
done
"""
_EXEC_STORM = "end=$((SECONDS + {seconds})); while [ $SECONDS -lt $end ]; do /bin/true; done"


@contextmanager
def mixed(seconds: int, workers: int = 2) -> Iterator[None]:
    """Interpreter, compression, sorting, file walks and hashing on as many cores as there are workers."""
    with _shells(_MIXED.format(seconds=seconds, python=sys.executable), workers):
        yield


@contextmanager
def exec_storm(seconds: int) -> Iterator[None]:
    """Two shells that start /bin/true again and again: what a crash loop looks like from below."""
    with _shells(_EXEC_STORM.format(seconds=seconds), 2):
        yield


@contextmanager
def _shells(script: str, count: int) -> Iterator[None]:
    shells = [subprocess.Popen(["bash", "-c", script], start_new_session=True) for _ in range(count)]
    try:
        yield
    finally:
        for shell in shells:
            try:
                shell.wait(timeout=30)
            except subprocess.TimeoutExpired:
                os.killpg(shell.pid, 9)
                shell.wait()


def packets_per_s(seconds: float) -> float:
    """UDP packets over loopback, sent and received by one process: two system calls and a softirq each."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as receiver, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender:
        receiver.bind(("127.0.0.1", 0))
        sender.connect(receiver.getsockname())
        count, end = 0, time.perf_counter() + seconds
        started = time.perf_counter()
        while time.perf_counter() < end:
            for _ in range(200):
                sender.send(b"x" * 64)
                receiver.recv(64)
            count += 200
        return count / (time.perf_counter() - started)


def forks_per_s(seconds: float) -> float:
    """Processes made and waited for."""
    count, started = 0, time.perf_counter()
    while time.perf_counter() - started < seconds:
        for _ in range(20):
            child = os.fork()
            if child == 0:
                os._exit(0)
            os.waitpid(child, 0)
        count += 20
    return count / (time.perf_counter() - started)


def syscalls_per_s(seconds: float) -> float:
    """The cheapest system call there is, in a loop."""
    count, started = 0, time.perf_counter()
    getppid = os.getppid
    while time.perf_counter() - started < seconds:
        for _ in range(5000):
            getppid()
        count += 5000
    return count / (time.perf_counter() - started)
