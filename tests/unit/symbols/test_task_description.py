import os
from pathlib import Path

import pytest

from necroscope.symbols import task_description
from necroscope.symbols.task_description import describe, parse_stat

TAIL = (
    b" 1 1 1 0 -1 4194560 498 2 0 288 0 22 9 1 %d %d 12 0 31 5 5 18 1 1 0 0 0 0 0 4096 1088 0 0 0"
    b" 17 1 %d %d 0 0 0\n"
)


@pytest.mark.parametrize(
    ("priority", "nice", "real_time", "policy", "expected"),
    [
        (20, 0, 0, 0, ("other", 0)),
        (39, 19, 0, 3, ("batch", 19)),
        (-51, 0, 50, 1, ("fifo", 50)),
        (-2, 0, 1, 2, ("rr", 1)),
        (20, 0, 0, 5, ("idle", 0)),
    ],
)
def test_policy_comes_with_its_priority(
    priority: int, nice: int, real_time: int, policy: int, expected: tuple[str, int]
) -> None:
    assert parse_stat(b"7 (napi/eth0-1) R" + TAIL % (priority, nice, real_time, policy)) == (
        "napi/eth0-1",
        "R",
        *expected,
    )


def test_name_with_brackets_and_spaces_does_not_shift_the_fields() -> None:
    assert parse_stat(b"7 (a) R (b) c) S" + TAIL % (20, 0, 0, 0))[:2] == ("a) R (b) c", "S")


def test_text_of_another_form_is_unknown() -> None:
    assert parse_stat(b"") == (None, None, None, None)
    assert parse_stat(b"7 (x) S 1 2") == (None, None, None, None)


@pytest.mark.kernel
def test_this_process_is_described(tmp_path: Path) -> None:
    with (tmp_path / "a\x1bfile").open("w") as file:
        found = describe(Path("/"), {}, os.getpid(), os.getpid(), file.fileno())
    assert found.argv0 is not None
    own_policies = {os.SCHED_OTHER: "other", os.SCHED_BATCH: "batch", os.SCHED_IDLE: "idle"}
    assert found.policy == own_policies[os.sched_getscheduler(0)]
    assert found.state == "R"
    assert found.priority == os.getpriority(os.PRIO_PROCESS, 0)
    assert found.file == f"{tmp_path}/a\\x1bfile"
    assert found.cpus_allowed is not None


@pytest.mark.kernel
@pytest.mark.parametrize("argument", [None, -1, 1 << 40, 999_999])
def test_argument_that_is_no_descriptor_is_no_file(argument: int | None) -> None:
    assert describe(Path("/"), {}, os.getpid(), os.getpid(), argument).file is None


def test_absent_task_is_unknown(tmp_path: Path) -> None:
    assert set(describe(tmp_path, {}, 1, 1, 0)) == {None}


def test_arguments_after_the_first_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "proc/5").mkdir(parents=True)
    (tmp_path / "proc/5/cmdline").write_bytes(b"/bin/app\0--password=secret\0")
    assert describe(tmp_path, {}, 5, 5, None).argv0 == "/bin/app"


def test_seen_from_a_cgroup_namespace_the_path_is_the_nodes(tmp_path: Path) -> None:
    (tmp_path / "proc/5/task/5").mkdir(parents=True)
    (tmp_path / "proc/5/task/5/cgroup").write_text("0::/../../system.slice/x.service\n")
    assert (
        describe(tmp_path, {b"": b"/machine.slice/recorder.scope"}, 5, 5, None).cgroup
        == "/system.slice/x.service"
    )


@pytest.mark.parametrize(
    ("cmdline", "argv0"),
    [
        (b"/usr/bin/python3\0-c\0secret\0", "/usr/bin/python3"),
        (b"[celeryd: w1@host] -A app --broker=amqp://u:pw@mq\0", "[celeryd:"),
        (b"nginx: worker process\0", "nginx: worker process"),
        (b"postgres: walwriter \0", "postgres: walwriter "),
        (b"job --password hunter2\0", "job"),
        (b"a b c d e f\0", "a b c d"),
    ],
)
def test_a_title_is_kept_without_its_arguments(cmdline: bytes, argv0: str) -> None:
    assert task_description._parse_argv0(cmdline) == argv0
