"""The source of jobs on this kernel: real processes with variables, followed until they end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from necroscope.model.reading import Moment, Reading
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_S
from necroscope.sources.jobs.jobs import ASKED_AT_ONCE, Jobs
from necroscope.symbols.messages import ProcessVariables
from necroscope.symbols.task_description import parse_environ, read_variables

RANK = {"RANK": "1", "WORLD_SIZE": "2", "MASTER_ADDR": "10.0.0.1", "MASTER_PORT": "29500"}
LATER_NS = 3600 * NS_PER_S


class DirectReader:
    """What the lookup process does, in this one."""

    def __init__(self) -> None:
        self.asked: list[int] = []

    def read_variables(
        self, pids: Sequence[int], names: Collection[str]
    ) -> list[ProcessVariables | None]:
        self.asked += pids
        return [read_variables(Path("/"), {}, pid, names) for pid in pids]


@pytest.fixture
def source() -> Iterator[Jobs]:
    made = Jobs(
        Path("/"),
        0,
        DirectReader(),
        boottime=lambda: time.clock_gettime_ns(time.CLOCK_BOOTTIME) + LATER_NS,
    )
    yield made
    made.close()


def start(code: str, log: Path, **variables: str) -> subprocess.Popen[bytes]:
    with log.open("wb") as file:
        return subprocess.Popen(
            [sys.executable, "-c", code], stderr=file, env=os.environ | RANK | variables
        )


def rows(reading: Reading, table: str) -> list[dict[str, Any]]:
    names = [column.name for column in TABLES[table].columns]
    return [dict(zip(names, row, strict=True)) for row in reading.rows.get(table, [])]


def read_until(source: Jobs, table: str, pid: int, seconds: float = 20) -> dict[str, Any]:
    """The first row of this process; the kernel and a thread of ours decide when."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        reading = source.read(Moment(time.time_ns(), time.monotonic_ns()))
        for row in rows(reading, table):
            if row["pid"] == pid:
                return row
        time.sleep(0.02)
    raise AssertionError(f"no row of {pid} in {table}")


def ended(source: Jobs, pid: int) -> dict[str, Any]:
    row = read_until(source, "job_members", pid)
    while row["ended_ns"] is None:
        row = read_until(source, "job_members", pid)
    return row


def test_a_rank_is_found_followed_and_its_end_is_told_with_its_words(
    source: Jobs, tmp_path: Path
) -> None:
    code = "import time; time.sleep(2); raise ValueError('bad batch')"
    process = start(code, tmp_path / "log")
    found = read_until(source, "job_members", process.pid)
    assert (found["job"], found["rank"], found["world_size"]) == ("torch/10.0.0.1:29500", 1, 2)
    progress = read_until(source, "job_progress", process.pid)
    assert progress["state"] in "RSD"
    process.wait()
    told = ended(source, process.pid)
    assert told["words"] == "ValueError: bad batch"
    assert told["status"] in (None, 1 << 8)


def test_a_rank_that_was_killed_pins_the_minutes_around_it(source: Jobs, tmp_path: Path) -> None:
    process = start("import time; time.sleep(60)", tmp_path / "log")
    read_until(source, "job_members", process.pid)
    process.send_signal(signal.SIGKILL)
    process.wait()
    reading = source.read(Moment(time.time_ns(), time.monotonic_ns()))
    events = [row for row in rows(reading, "events") if row["pid"] == process.pid]
    if not events:
        pytest.skip("this kernel does not tell how a process ended (PIDFD_GET_INFO, Linux 6.15)")
    assert [event["kind"] for event in events] == ["job_member_died"]
    assert "signal 9" in events[0]["message"]
    assert [alarm.kind for alarm in reading.alarms] == ["job_member_died"]


def test_a_new_segment_tells_of_every_member(source: Jobs, tmp_path: Path) -> None:
    process = start("import time; time.sleep(60)", tmp_path / "log")
    try:
        read_until(source, "job_members", process.pid)
        source.start_segment()
        assert read_until(source, "job_members", process.pid)["ended_ns"] is None
    finally:
        process.kill()
        process.wait()


def test_processes_of_another_cgroup_are_another_nodes(tmp_path: Path) -> None:
    reader = DirectReader()
    source = Jobs(Path("/"), 0, reader, "/no/such", lambda: time.clock_gettime_ns(7) + LATER_NS)
    process = start("import time; time.sleep(60)", tmp_path / "log")
    try:
        while process.pid not in reader.asked:
            reading = source.read(Moment(time.time_ns(), time.monotonic_ns()))
        assert not rows(reading, "job_members")
    finally:
        process.kill()
        process.wait()
        source.close()


def test_a_thousand_new_processes_cost_a_bounded_look_and_are_said(tmp_path: Path) -> None:
    for pid in range(1, 1001):
        folder = tmp_path / "proc" / str(pid)
        folder.mkdir(parents=True)
        fields = ["S", "1", *["0"] * 17, "100", *["0"] * 30]
        (folder / "stat").write_text(f"{pid} (short job) {' '.join(fields)}\n")
    reader = DirectReader()
    source = Jobs(tmp_path, NS_PER_S, reader, boottime=lambda: LATER_NS)
    reading = source.read(Moment(0, 0))
    source.close()
    assert len(reader.asked) == ASKED_AT_ONCE
    (gap,) = reading.gaps
    assert gap.lost == 1000 - ASKED_AT_ONCE


def test_of_an_environment_only_named_variables_are_taken() -> None:
    text = b"AWS_SECRET=s3cret\0RANK=1\0RANK=2\0RANK_TOKEN=x\0=odd\0\xff\xfe=1\0"
    assert parse_environ(text, {"RANK"}) == {"RANK": "1"}
