"""The source of jobs on this kernel: real processes with variables, followed until they end."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from necroscope.model.reading import Moment, Reading
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_S
from necroscope.sources.jobs.followed_member import FollowedMember, MemberProgress
from necroscope.sources.jobs.jobs import ASKED_AT_ONCE, MEMBER_LIMIT, Jobs
from necroscope.sources.jobs.membership import Membership
from necroscope.sources.jobs.ray_drivers import RayDriver
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


def wait_for_new_name(pid: int) -> None:
    end = time.monotonic() + 20
    while Path(f"/proc/{pid}/comm").read_text() == "sh\n":
        assert time.monotonic() < end
        time.sleep(0.005)


def ended(source: Jobs, pid: int) -> dict[str, Any]:
    row = read_until(source, "job_members", pid)
    while row["ended_ns"] is None:
        row = read_until(source, "job_members", pid)
    return row


def test_a_rank_is_found_followed_and_its_end_is_reported_with_its_words(
    source: Jobs, tmp_path: Path
) -> None:
    code = "import time; time.sleep(2); raise ValueError('bad batch')"
    process = start(code, tmp_path / "log")
    found = read_until(source, "job_members", process.pid)
    assert (found["job"], found["rank"], found["world_size"]) == ("torch/10.0.0.1:29500", 1, 2)
    progress = read_until(source, "job_progress", process.pid)
    assert progress["state"] in "RSD"
    process.wait()
    result = ended(source, process.pid)
    assert result["words"] == "ValueError: bad batch"
    assert result["status"] in (None, 1 << 8)


@pytest.mark.parametrize(
    "done",
    [lambda log: log.rename(log.with_suffix(".1")), Path.unlink, lambda log: os.truncate(log, 0)],
    ids=["rotated", "removed", "truncated"],
)
def test_the_last_words_are_found_whatever_happened_to_the_name_of_the_log(
    source: Jobs, tmp_path: Path, done: Callable[[Path], object]
) -> None:
    """As logrotate does it, as a pod that is gone leaves it, and as copytruncate does it."""
    log = tmp_path / "log"
    code = "import sys; print('x' * 9000, file=sys.stderr); input(); raise ValueError('bad batch')"
    with log.open("ab") as file:
        process = subprocess.Popen(
            [sys.executable, "-c", code],
            stderr=file,
            stdin=subprocess.PIPE,
            env=os.environ | RANK,
        )
    read_until(source, "job_members", process.pid)
    while source._members[process.pid].log < 0:
        read_until(source, "job_progress", process.pid)
    done(log)
    process.communicate(b"\n")
    assert ended(source, process.pid)["words"] == "ValueError: bad batch"


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


def test_how_a_rank_ended_is_known_while_its_parent_has_not_asked(
    source: Jobs, tmp_path: Path
) -> None:
    process = start("import time; time.sleep(60)", tmp_path / "log")
    read_until(source, "job_members", process.pid)
    process.send_signal(signal.SIGKILL)
    try:
        assert ended(source, process.pid)["status"] == signal.SIGKILL
        assert zombie(process.pid), "its parent has not taken it"
    finally:
        process.wait()


def test_a_rank_that_ended_well_is_known_once_its_parent_has_asked(source: Jobs) -> None:
    """Its `stat` has the 0 that it also shows to who may not see more."""
    process = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, env=os.environ | RANK
    )
    read_until(source, "job_members", process.pid)
    assert process.stdin is not None
    process.stdin.write(b"\n")
    process.stdin.close()
    while not zombie(process.pid):
        time.sleep(0.01)
    reading = source.read(Moment(time.time_ns(), time.monotonic_ns()))
    assert not rows(reading, "job_members"), "it waits"
    process.wait()
    reading = source.read(Moment(time.time_ns(), time.monotonic_ns()))
    [row] = rows(reading, "job_members")
    assert row["status"] in (0, None)
    assert not rows(reading, "events")


def zombie(pid: int) -> bool:
    return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b") ")[2][:1] == b"Z"


def test_what_a_stranger_with_its_number_left_is_not_how_a_rank_ended() -> None:
    fields = ["Z", "1", *["0"] * 17, "700", *["0"] * 29, "256"]
    stat = f"7 (x) {' '.join(fields)}\n".encode()
    member = FollowedMember(7, "x", None, 0, Membership("torch/x", "torch", "rank"), 1)
    for ticks, status in ((700, 256), (699, None)):
        member.started_ticks, member._pidfd = ticks, os.open(os.devnull, os.O_RDONLY)
        member.ask_status(lambda _pid, _name: stat)
        assert member.status == status


def test_a_new_segment_tells_of_every_member(source: Jobs, tmp_path: Path) -> None:
    process = start("import time; time.sleep(60)", tmp_path / "log")
    try:
        read_until(source, "job_members", process.pid)
        source.start_segment()
        assert read_until(source, "job_members", process.pid)["ended_ns"] is None
    finally:
        process.kill()
        process.wait()


def test_without_a_job_there_is_nothing_to_do_until_the_next_look(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    source = Jobs(tmp_path, 5 * NS_PER_S, DirectReader())
    source.read(Moment(0, 100 * NS_PER_S))
    assert source.idle_until_ns == 105 * NS_PER_S
    source.start_segment()
    assert source.idle_until_ns == 0
    source.close()


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


class JobReader:
    """Every process is a rank of the job that its number gives it."""

    def __init__(self, jobs: dict[int, str]) -> None:
        self._jobs = jobs

    def read_variables(
        self, pids: Sequence[int], names: Collection[str]
    ) -> list[ProcessVariables | None]:
        ranks = [RANK | {"TORCHELASTIC_RUN_ID": self._jobs.get(pid, "storm")} for pid in pids]
        return [ProcessVariables(rank, None, "/tenant") for rank in ranks]


@pytest.fixture
def node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Jobs]:
    """A source over processes that are drawn, by number their user, and the jobs they claim."""
    monkeypatch.setattr(FollowedMember, "open", lambda _self, _proc: True)
    monkeypatch.setattr(FollowedMember, "has_ended", lambda _self: False)
    progress = MemberProgress("S", 0, NS_PER_S, NS_PER_S, 0)
    monkeypatch.setattr(FollowedMember, "progress", lambda _self, _ns: progress)

    def draw(users: dict[int, int], jobs: dict[int, str]) -> Jobs:
        for pid, uid in users.items():
            folder = tmp_path / "proc" / str(pid)
            folder.mkdir(parents=True)
            fields = ["S", "1", *["0"] * 17, str(pid), *["0"] * 30]
            (folder / "stat").write_text(f"{pid} (rank) {' '.join(fields)}\n")
            (folder / "status").write_text(f"Name:\trank\nUid:\t{uid}\t{uid}\n")
        return Jobs(tmp_path, 0, JobReader(jobs), boottime=lambda: LATER_NS)

    return draw


def looks(source: Jobs, count: int) -> list[Reading]:
    return [source.read(Moment(time_ns, time_ns)) for time_ns in range(1, count + 1)]


def test_one_user_does_not_take_all_places(node: Callable[..., Jobs]) -> None:
    storm = dict.fromkeys(range(1, MEMBER_LIMIT + 60), 65534)
    source = node(storm | {900: 1000, 901: 1000}, {900: "train", 901: "train"})
    readings = looks(source, 8)
    assert len(source._members) == MEMBER_LIMIT
    assert {900, 901} <= source._members.keys()
    assert any("are not followed" in gap.cause for reading in readings for gap in reading.gaps)
    followed = {row["pid"] for row in rows(readings[-1], "job_progress")}
    assert {900, 901} <= followed
    assert [part.name for part in readings[-1].parts] == ["job progress"], "the rest is a gap"


@pytest.mark.parametrize("first", [1000, 65534])
def test_a_claim_to_be_a_rank_of_anothers_job_is_a_job_of_its_own(
    node: Callable[..., Jobs], first: int
) -> None:
    second = 65534 if first == 1000 else 1000
    source = node({10: first, 11: second, 12: first}, {10: "train", 11: "train", 12: "train"})
    (reading,) = looks(source, 1)
    jobs = {row["pid"]: row["job"] for row in rows(reading, "job_members")}
    assert jobs[10] == jobs[12]
    assert {jobs[10], jobs[11]} == {"torch/train", f"torch/train (uid {second})"}


def test_of_an_environment_only_named_variables_are_taken() -> None:
    text = b"AWS_SECRET=s3cret\0RANK=1\0RANK=2\0RANK_TOKEN=x\0=odd\0\xff\xfe=1\0"
    assert parse_environ(text, {"RANK"}) == {"RANK": "1"}


def test_a_ray_worker_that_waits_for_its_job_is_followed_once_it_has_one(
    node: Callable[..., Jobs], monkeypatch: pytest.MonkeyPatch
) -> None:
    log = "/tmp/ray/session_2026-11-18_09-00-00_000000_1/logs/worker-0123456789abcdef-{}-7.err"
    job = "ffffffff"

    def read(_self: object, pids: Sequence[int], _: object) -> list[ProcessVariables]:
        return [ProcessVariables({}, log.format(job), "/tenant") for _ in pids]

    monkeypatch.setattr(JobReader, "read_variables", read)
    source = node({7: 1000}, {})
    looks(source, 2)
    assert not source._members
    job = "01000000"
    source.read(Moment(10, 10))
    [member] = source._members.values()
    assert member.member.job.endswith("/01000000")


def test_a_process_about_which_no_answer_came_is_asked_about_again(
    node: Callable[..., Jobs], monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the lookup process is away: on a node in trouble a rank that is restarted then would
    never be found.
    """
    answer = JobReader.read_variables
    monkeypatch.setattr(JobReader, "read_variables", lambda _self, pids, _names: [None] * len(pids))
    source = node(dict.fromkeys(range(1, 200), 0), {})
    looks(source, 8)
    assert not source._members
    monkeypatch.setattr(JobReader, "read_variables", answer)
    looks(source, 40)
    assert len(source._members) == 199


@pytest.mark.alone  # of many newcomers some are not read again, and other tests start many
def test_a_script_that_becomes_a_rank_is_found(source: Jobs, tmp_path: Path) -> None:
    """A supervisor's script waits for something, sets the variables and turns into the program."""
    code = f"read line; RANK=3 WORLD_SIZE=4 MASTER_ADDR=h exec {sys.executable} -c 'input()'"
    script = subprocess.Popen(["sh", "-c", code], stdin=subprocess.PIPE, bufsize=0)
    try:
        assert isinstance(source._lookup, DirectReader)
        while script.pid not in source._lookup.asked:
            source.read(Moment(time.time_ns(), time.monotonic_ns()))
        assert script.stdin is not None
        script.stdin.write(b"go\n")
        wait_for_new_name(script.pid)  # too old to be looked at twice
        assert read_until(source, "job_members", script.pid)["rank"] == 3
    finally:
        script.kill()
        script.communicate()


def test_after_an_end_its_successor_is_looked_for_each_second(
    node: Callable[..., Jobs], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(FollowedMember, "ask_status", lambda _self, _reader: None)
    source = node({7: 0}, {})
    source._every_ns = 60 * NS_PER_S
    source.read(Moment(0, 0))
    assert list(source._members) == [7]
    monkeypatch.setattr(FollowedMember, "has_ended", lambda _self: True)
    source.read(Moment(NS_PER_S, NS_PER_S))
    (tmp_path / "proc/7").rename(tmp_path / "proc/8")
    monkeypatch.setattr(FollowedMember, "has_ended", lambda _self: False)
    source.read(Moment(2 * NS_PER_S, 2 * NS_PER_S))
    assert list(source._members) == [8]
    for second in range(3, 20):
        source.read(Moment(second * NS_PER_S, second * NS_PER_S))
    assert source._next_ns > 60 * NS_PER_S, "then as before"


def test_a_submitted_driver_is_part_of_its_job_by_both_names(
    node: Callable[..., Jobs], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found by its log when it starts, and by the log of its core when it has called `ray.init`."""
    session = "2026-11-18_09-00-00_000000_1"
    log = f"/tmp/ray/session_{session}/logs/job-driver-raysubmit_Ab3.log"
    monkeypatch.setattr(
        JobReader,
        "read_variables",
        lambda _self, pids, _names: [ProcessVariables({}, log, "/tenant") for _ in pids],
    )
    source = node({7: 0}, {})
    (reading,) = looks(source, 1)
    assert [row["job"] for row in rows(reading, "job_members")] == [f"ray/{session}/raysubmit_Ab3"]
    core = Membership(f"ray/{session}/02000000", "ray", "driver")
    source._drivers = {7: RayDriver(7, core, LATER_NS)}
    reading = source.read(Moment(10, 10))
    jobs = {row["job"] for row in rows(reading, "job_members")}
    assert jobs == {f"ray/{session}/02000000", f"ray/{session}/raysubmit_Ab3"}
    assert not source.read(Moment(11, 11)).rows.get("job_members"), "once"
