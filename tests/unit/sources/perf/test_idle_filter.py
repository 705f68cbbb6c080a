"""The filter's program by its bytes and on the running kernel: idle samples go, an interrupt on an
idle core stays.
"""

import errno
import os
import struct
import subprocess
import sys
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from necroscope.errors import PermissionMissing, SourceUnavailable
from necroscope.model.idle import IDLE_FUNCTIONS
from necroscope.perf_abi import event_attr as abi
from necroscope.perf_abi import records
from necroscope.profile import kernel_symbols
from necroscope.sources.perf import bpf, idle_filter
from necroscope.sources.perf.event import enable, open_event
from necroscope.sources.perf.idle_filter import IdleFilter, filter_program, make_idle_filter, merge
from necroscope.sources.perf.ring import Ring
from necroscope.sources.sysfs.cpus import parse as parse_cpus

# Disassembled by hand; jumps count instructions, of which a 64-bit constant is two.
PROGRAM = """
bf 16 0000 00000000  r6 = r1
85 00 0000 0e000000  r0 = pid and tgid
55 00 0d00 00000000  if r0 != 0 goto write
79 66 8000 00000000  r6 = interrupted address
18 01 0000 00100081  r1 = ffffffff81001000
00 00 0000 ffffffff
2d 61 0900 00000000  if r1 > r6 goto write
18 01 0000 80100081  r1 = ffffffff81001080
00 00 0000 ffffffff
2d 61 0800 00000000  if r1 > r6 goto idle
18 01 0000 00200081  r1 = ffffffff81002000
00 00 0000 ffffffff
2d 61 0300 00000000  if r1 > r6 goto write
18 01 0000 40200081  r1 = ffffffff81002040
00 00 0000 ffffffff
2d 61 0200 00000000  if r1 > r6 goto idle
b7 00 0000 01000000  write: r0 = 1
95 00 0000 00000000  exit
62 0a fcff 00000000  idle: key = 0
18 11 0000 05000000  r1 = map 5
00 00 0000 00000000
bf a2 0000 00000000  r2 = r10
07 02 0000 fcffffff  r2 -= 4
85 00 0000 01000000  r0 = value
15 00 0300 00000000  if r0 == 0 goto drop
79 01 0000 00000000  r1 = *r0
07 01 0000 01000000  r1 += 1
7b 10 0000 00000000  *r0 = r1
b7 00 0000 00000000  drop: r0 = 0
95 00 0000 00000000  exit
"""


def test_the_program_compares_with_each_range_in_order() -> None:
    expected = b"".join(bytes.fromhex(line[:20]) for line in PROGRAM.strip().splitlines())
    ranges = [(0xFFFFFFFF81001000, 0xFFFFFFFF81001080), (0xFFFFFFFF81002000, 0xFFFFFFFF81002040)]
    assert filter_program(ranges, 5, 128) == expected


def test_the_program_has_no_instruction_that_linux_4_9_lacks() -> None:
    code = filter_program([(16 * n, 16 * n + 8) for n in range(1, 25)], 5, 256)
    assert not set(code[::8]) & {0xA5, 0xAD, 0xB5, 0xBD, 0xC5, 0xCD, 0xD5, 0xDD}, (
        "JLT, JLE and their signed kin came with 4.14"
    )


def test_ranges_are_in_order_and_those_that_touch_are_one() -> None:
    assert merge([(50, 60), (10, 20), (20, 30), (25, 28), (40, 45), (42, 51)]) == [
        (10, 30),
        (40, 60),
    ]
    assert merge([]) == []


def test_hidden_and_empty_ranges_are_none() -> None:
    assert merge([(0, 0), (0, 16), (7, 7), (9, 8)]) == []
    assert make_idle_filter([(0, 0)], 2) is None


def refuse(number: int) -> object:
    def refused(*_: object) -> int:
        raise OSError(number, os.strerror(number))

    return refused


@pytest.mark.parametrize(
    ("number", "error"),
    [
        (errno.EPERM, PermissionMissing),
        (errno.ENOSYS, SourceUnavailable),
        (errno.EINVAL, SourceUnavailable),
    ],
)
def test_where_bpf_is_not_allowed_there_is_no_filter(
    monkeypatch: pytest.MonkeyPatch, number: int, error: type[Exception]
) -> None:
    monkeypatch.setattr(bpf, "syscall", refuse(number))
    with pytest.raises(error):
        IdleFilter([(1, 2)], 2)
    assert make_idle_filter([(1, 2)], 2) is None


def test_a_program_that_is_refused_leaves_no_map_behind(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[int] = []

    def only_maps(_: str, command: int, *__: object) -> int:
        if command != bpf._MAP_CREATE:
            raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))
        opened.append(os.open("/dev/null", os.O_RDONLY))
        return opened[-1]

    monkeypatch.setattr(bpf, "syscall", only_maps)
    with pytest.raises(SourceUnavailable, match="Invalid argument"):
        IdleFilter([(1, 2)], 2)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(opened[0])


def test_another_processor_has_no_filter(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(idle_filter.platform, "machine", lambda: "riscv64")
    assert make_idle_filter([(1, 2)], 2) is None


# A TCP sender with a pacing rate: while it sleeps, a timer of the kernel sends the rest, in softirqs
# on the idle core.
PACED_SENDER = """
import os, socket, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
listener = socket.create_server(("127.0.0.1", 0))
sender = socket.create_connection(listener.getsockname())
receiver, _ = listener.accept()
MAX_PACING_RATE, BYTES_PER_S = 47, 50_000_000
sender.setsockopt(socket.SOL_SOCKET, MAX_PACING_RATE, BYTES_PER_S)
sender.settimeout(0.02)
receiver.setblocking(False)
while True:
    for move in (lambda: sender.send(bytes(1 << 20)), lambda: receiver.recv(1 << 22)):
        try:
            move()
        except (BlockingIOError, TimeoutError):
            pass
    time.sleep(0.02)
"""
SOFTIRQ = {"__do_softirq", "handle_softirqs", "__softirqentry_text_start"}
ROOT = Path("/")
_SAMPLE = struct.Struct("<QIIQ").unpack_from  # address, pid, tid, length of the chain


class SampledCore:
    """The clock of one core at a high rate; `take` gives address and callchain of each sample of
    the idle task.
    """

    def __init__(self, cpu: int, idle: IdleFilter | None) -> None:
        hz = min(8000, int(Path("/proc/sys/kernel/perf_event_max_sample_rate").read_text()))
        sample_type = abi.SAMPLE_IP | abi.SAMPLE_TID | abi.SAMPLE_CALLCHAIN
        attr = abi.EventAttr(
            abi.TYPE_SOFTWARE, abi.SW_CPU_CLOCK, sample_type, abi.FLAG_DISABLED, hz
        )
        descriptor = open_event(attr, cpu=cpu)
        if idle is not None:
            idle.attach(descriptor)
        self.ring = Ring(descriptor, 512)
        enable(descriptor)

    def take(self) -> Iterator[tuple[int, tuple[int, ...]]]:
        data, position = self.ring.drain(), 0
        while position < len(data):
            kind, _, size = records.HEADER.unpack_from(data, position)
            if kind == records.SAMPLE:
                address, pid, _, length = _SAMPLE(data, position + 8)
                if pid == 0:
                    yield address, struct.unpack_from(f"<{length}Q", data, position + 32)
            position += size


class Names:
    """Kernel functions, read plainly."""

    def __init__(self) -> None:
        lines = [line.split() for line in Path("/proc/kallsyms").read_text().splitlines()]
        self._symbols = sorted((int(line[0], 16), line[2]) for line in lines if line[1] in "tTwW")

    def __call__(self, address: int) -> str:
        return self._symbols[bisect_right(self._symbols, (address, "\uffff")) - 1][1]


def make() -> IdleFilter:
    possible = parse_cpus((ROOT / "sys/devices/system/cpu/possible").read_text())
    made = make_idle_filter(
        kernel_symbols.read(ROOT / "proc/kallsyms").ranges(IDLE_FUNCTIONS), len(possible)
    )
    assert made is not None
    return made


@pytest.fixture
def idle() -> Iterator[IdleFilter]:
    made = make()
    yield made
    made.close()


@pytest.mark.root
@pytest.mark.kernel
def test_an_interrupt_on_an_idle_core_is_kept_and_idleness_is_not(idle: IdleFilter) -> None:
    cpu = min(os.sched_getaffinity(0))
    filtered, unfiltered, names = SampledCore(cpu, idle), SampledCore(cpu, None), Names()
    sender = subprocess.Popen([sys.executable, "-c", PACED_SENDER, str(cpu)])
    kept: Counter[str] = Counter()
    all_idle = softirqs = 0
    counts = [idle.dropped()]
    deadline = time.monotonic() + 20
    try:
        while (not softirqs or min(counts[-1], all_idle) < 1000) and time.monotonic() < deadline:
            time.sleep(0.2)
            counts.append(idle.dropped())
            for address, chain in filtered.take():
                kept[names(address)] += 1
                softirqs += not SOFTIRQ.isdisjoint(map(names, chain))
            all_idle += sum(names(address) in IDLE_FUNCTIONS for address, _ in unfiltered.take())
    finally:
        sender.kill()
        sender.wait()
        filtered.ring.close()
        unfiltered.ring.close()
    if all_idle < 1000:
        pytest.skip("the core was hardly idle in twenty seconds, as the event without a filter saw")
    assert not kept.keys() & IDLE_FUNCTIONS
    assert softirqs, kept
    assert counts == sorted(counts)
    assert counts[-1] > 1000


@pytest.mark.root
@pytest.mark.kernel
def test_an_event_goes_on_without_a_filter_that_was_taken_off() -> None:
    made, cpu, names = make(), min(os.sched_getaffinity(0)), Names()
    sampled = SampledCore(cpu, made)
    found: set[str] = set()
    made.detach(sampled.ring.descriptor)
    deadline = time.monotonic() + 20
    while not found & IDLE_FUNCTIONS and time.monotonic() < deadline:
        time.sleep(0.1)
        found |= {names(address) for address, _ in sampled.take()}
    sampled.ring.close()
    made.close()
    if not found:
        pytest.skip("the core was never idle in twenty seconds")
    assert found & IDLE_FUNCTIONS


@pytest.mark.root
@pytest.mark.kernel
def test_a_program_at_a_kprobe_or_tracepoint_makes_the_filter_harmful(idle: IdleFilter) -> None:
    """Its samples would be missing, and programs that cost time are what we look for."""
    leave = bytes.fromhex("b700000000000000 9500000000000000")
    for kind in (bpf.PROG_TYPE_KPROBE, bpf.PROG_TYPE_TRACEPOINT):
        program = bpf._load(kind, leave)
        assert not idle.is_harmless()
        os.close(program)
    others = bpf.program_types({})
    assert idle.is_harmless() == {2, 5}.isdisjoint(others.values())


def test_who_may_not_see_programs_does_not_filter(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(bpf, "syscall", refuse(errno.EPERM))
    unseen = IdleFilter.__new__(IdleFilter)
    unseen._types = {}
    assert not unseen.is_harmless()
