"""The stacks source end to end on the running kernel."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from necroscope.model.reading import Moment, Reading
from necroscope.model.tables import TABLES
from necroscope.segment.block import rows_of as decoded
from necroscope.sources.perf.cgroup_ledger import CgroupLedger
from necroscope.sources.perf.rings import Rings
from necroscope.sources.perf.sampler import Sampler
from necroscope.sources.sysfs.cpus import parse as parse_cpus
from necroscope.symbols.lookup import Lookup
from necroscope.symbols.messages import BLOCK_BITS, UserRequest, unpack_block

pytestmark = [pytest.mark.root, pytest.mark.kernel]

HZ = 97
BUSY_S = 0.6
MEMORY_CGROUPS = [Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup")]
# Busy for this much CPU time, whatever else runs on this machine, under a name of its own.
BUSY = """
import ctypes, sys, time
ctypes.CDLL(None).prctl(15, b"necro-busy", 0, 0, 0)
print("named", flush=True)
sys.stdin.readline()
start = time.process_time()
while time.process_time() - start < float(sys.argv[1]):
    for _ in range(1000): pass
print(time.process_time() - start, flush=True)
sys.stdin.readline()
"""


@pytest.fixture
def lookup() -> Iterator[Lookup]:
    lookup = Lookup(timeout_s=5.0)
    yield lookup
    lookup.close()


@pytest.fixture
def sampler(lookup: Lookup) -> Iterator[Sampler]:
    ledger = CgroupLedger(Path("/"))
    online = parse_cpus(Path("/sys/devices/system/cpu/online").read_text())
    rings = Rings(HZ, ledger.tracepoint_ids)
    rings.follow(online, len(online))
    sampler = Sampler(rings, lookup, ledger, Path("/"))
    yield sampler
    sampler.close()


@pytest.fixture
def busy() -> Iterator[subprocess.Popen[str]]:
    child = subprocess.Popen(
        [sys.executable, "-c", BUSY, str(BUSY_S)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == "named\n"
    yield child
    child.kill()
    child.wait()
    child.stdin.close()
    child.stdout.close()


def read(sampler: Sampler) -> Reading:
    now_ns = time.monotonic_ns()
    return sampler.read(Moment(now_ns + OFFSET_NS, now_ns))


OFFSET_NS = time.time_ns() - time.monotonic_ns()


def rows_of(reading: Reading, table: str) -> list[dict[str, Any]]:
    names = [column.name for column in TABLES[table].columns]
    rows, columns = reading.rows.get(table, []), reading.columns.get(table)
    if columns is not None:
        rows = decoded(TABLES[table], len(columns), map(memoryview, columns.buffers))
    return [dict(zip(names, row, strict=True)) for row in rows]


def run(busy: subprocess.Popen[str]) -> float:
    assert busy.stdin is not None
    assert busy.stdout is not None
    busy.stdin.write("go\n")
    busy.stdin.flush()
    return float(busy.stdout.readline())


def test_a_busy_process_appears_with_its_name_and_about_its_samples(
    sampler: Sampler, busy: subprocess.Popen[str]
) -> None:
    from_ns = time.time_ns()
    read(sampler)
    used_s = run(busy)
    reading = read(sampler)
    to_ns = time.time_ns()
    samples = rows_of(reading, "samples")
    mine = [row for row in samples if row["pid"] == busy.pid]
    assert {row["comm"] for row in mine} == {"necro-busy"}
    assert 0.6 * HZ * used_s < len(mine) < 1.5 * HZ * used_s
    assert all(from_ns - 10**8 <= row["time"] <= to_ns + 10**8 for row in samples)
    assert [row["time"] for row in samples] == sorted(row["time"] for row in samples)
    online = sampler.rings.cpus
    assert {row["cpu"] for row in samples} <= online
    cgroup = {row["cgroup"] for row in mine}
    assert len(cgroup) == 1
    assert cgroup.pop().startswith("/")
    assert busy.pid in {task.pid for cpu in online for task in sampler.seen_on(cpu, time.time_ns())}


def test_every_sample_has_a_stack_written_before_it(
    sampler: Sampler, busy: subprocess.Popen[str]
) -> None:
    stacks: set[int] = {-1}
    frames: set[int] = set()
    for reading in (read(sampler), run(busy) and read(sampler), read(sampler)):
        assert isinstance(reading, Reading)
        frames |= {row["frame"] for row in rows_of(reading, "frames")}
        for row in rows_of(reading, "stacks"):
            assert row["parent"] in stacks
            assert row["frame"] in frames
            stacks.add(row["stack"])
        assert {row["stack"] for row in rows_of(reading, "samples")} <= stacks


def test_idle_cores_give_no_samples_of_idling(sampler: Sampler) -> None:
    deadline = time.monotonic() + 10
    readings = []
    while sampler.idle_dropped == 0 and time.monotonic() < deadline:
        time.sleep(0.1)
        readings.append(read(sampler))
    if sampler.rings.event_name == "cycles":
        pytest.skip("an idle core has no cycles to sample")
    if sampler.idle_dropped == 0:
        pytest.skip("no core of this machine was idle for a moment in ten seconds")
    for reading in readings:
        for row in rows_of(reading, "samples"):
            if row["pid"] == 0:
                assert sampler.frames_of(row["stack"])[0].function not in (
                    "default_idle",
                    "pv_native_safe_halt",
                    "native_safe_halt",
                )


def test_the_ledger_sees_a_cgroup_made_removed_and_released(sampler: Sampler) -> None:
    root = next(directory for directory in MEMORY_CGROUPS if (directory / "cgroup.procs").exists())
    name = f"necroscope-test-{os.getpid()}"
    from_ns = time.time_ns()
    (root / name).mkdir()
    (root / name).rmdir()
    seen: dict[str, dict[str, Any]] = {}
    deadline = time.monotonic() + 10
    while len(seen) < 3 and time.monotonic() < deadline:
        time.sleep(0.02)  # the release comes when the kernel gets to it
        for row in rows_of(read(sampler), "cgroup_ledger"):
            # A released cgroup has left the tree: its path may be gone by then, its id is not.
            if row["path"].endswith(name) or (
                seen and row["cgroup_id"] == seen["made"]["cgroup_id"]
            ):
                seen[row["action"]] = row
    assert seen.keys() == {"made", "removed", "released"}
    assert len({row["cgroup_id"] for row in seen.values()}) == 1
    assert len({row["hierarchy"] for row in seen.values()}) == 1
    times = [seen[action]["time"] for action in ("made", "removed", "released")]
    assert times == sorted(times)
    assert from_ns - 10**8 <= times[0] <= time.time_ns() + 10**8
    assert seen["made"]["path"] == f"/{name}"


def test_programs_that_live_for_milliseconds_are_named_by_their_exec(
    sampler: Sampler, tmp_path: Path
) -> None:
    program = tmp_path / "necro-shortlife"
    program.write_text("#!/bin/sh\ni=0; while [ $i -lt 20000 ]; do i=$((i+1)); done\n")
    program.chmod(0o755)
    read(sampler)
    for _ in range(15):
        subprocess.run([str(program)], check=True)
    named = [row for row in rows_of(read(sampler), "samples") if row["comm"] == "necro-shortlife"]
    assert named
    assert all(not Path(f"/proc/{row['pid']}").exists() for row in named)


def test_functions_are_those_that_the_programs_own_symbols_give(
    sampler: Sampler, busy: subprocess.Popen[str], lookup: Lookup
) -> None:
    """The innermost function of each sample in Python's own code, against a question about that
    very file.
    """
    read(sampler)
    run(busy)
    mine = [row for row in rows_of(read(sampler), "samples") if row["pid"] == busy.pid]
    frames = [sampler.frames_of(row["stack"])[0] for row in mine]
    named = {
        frame.function for frame in frames if frame.kind == "user" and "python" in frame.module
    }
    (executable,) = {
        frame.module for frame in frames if frame.kind == "user" and "python" in frame.module
    }
    status = Path(executable).stat()
    blocks = tuple(range((status.st_size >> BLOCK_BITS) + 1))[:1024]
    request = UserRequest(
        busy.pid,
        executable,
        os.major(status.st_dev),
        os.minor(status.st_dev),
        status.st_ino,
        blocks,
    )
    (answer,) = lookup.user_functions([request])
    assert answer is not None
    known = {name.decode() for block in answer.functions for _, name in unpack_block(block)}
    assert "_PyEval_EvalFrameDefault" in named
    assert named - {None} <= known


def test_a_stopped_process_gives_no_samples(sampler: Sampler, busy: subprocess.Popen[str]) -> None:
    busy.send_signal(signal.SIGSTOP)
    while Path(f"/proc/{busy.pid}/stat").read_text().rsplit(") ", 1)[1][0] != "T":
        time.sleep(0.001)
    read(sampler)
    time.sleep(0.1)
    assert [row for row in rows_of(read(sampler), "samples") if row["pid"] == busy.pid] == []
    busy.send_signal(signal.SIGCONT)
