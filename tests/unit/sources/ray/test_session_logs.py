"""Ray's log files: rotated, renamed, too many, too fast, out of reach."""

import os
import shutil
from pathlib import Path

import pytest
from tests.synthetic_root import write_files
from tests.unit.sources.ray.ray_session import (
    DATA,
    HANG,
    kinds,
    look,
    make,
    session,
)

from necroscope.sources.ray import ray as ray_module
from necroscope.sources.ray import session_logs
from necroscope.sources.ray.session_logs import PIECE_BYTES
from necroscope.symbols.target_files import open_in_root


def test_a_log_that_is_rotated_is_read_to_its_end_and_the_new_one_from_its_start(
    tmp_path: Path,
) -> None:
    logs = session(tmp_path)
    log = logs / "gcs_server.out"
    log.write_bytes(b"")
    source = make(tmp_path)
    look(source, 0)
    line = b"Health check failed for node " + b"ab" * 28
    log.write_bytes(line + b", remaining checks 4\n")
    log.rename(logs / "gcs_server.out.1")
    log.write_bytes(line + b", remaining checks 3\n")
    assert kinds(look(source, 10)) == {"ray_health_check_failed": 2}
    source.close()


def test_a_new_session_is_followed(tmp_path: Path) -> None:
    session(tmp_path)
    source = make(tmp_path)
    look(source, 0)
    write_files(
        session(tmp_path, "session_2"),
        {"gcs_server.out": "Health check failed for node " + "ab" * 28 + "\n"},
    )
    assert kinds(look(source, 10)) == {"ray_health_check_failed": 1}
    source.close()


def session_of_a_container(tmp_path: Path, comm: str, other: str) -> Path:
    """Its logs, which only the first of the two processes leads to."""
    inside = tmp_path / "rootfs"
    write_files(tmp_path, {"proc/77/comm": f"{comm}\n", "proc/78/comm": f"{other}\n"})
    (tmp_path / "proc/77/root").symlink_to(inside)
    return session(inside)


def test_ray_in_a_container_is_found_by_its_processes(tmp_path: Path) -> None:
    logs = session_of_a_container(tmp_path, "raylet", "bash")
    source = make(tmp_path)
    look(source, 0)
    write_files(logs, {"raylet.out": "this node has been marked dead\n"})
    assert kinds(look(source, 10)) == {"ray_node_dead": 1}
    source.close()


def test_a_symlink_that_leads_outside_stays_inside(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("Health check failed for node " + "ab" * 28 + "\n")
    root = tmp_path / "root"
    logs = session(root)
    source = make(root)
    look(source, 0)
    (logs / "gcs_server.out").symlink_to(outside / "secret")
    assert kinds(look(source, 10)) == {}
    source.close()


def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    logs = session(tmp_path)
    source = make(tmp_path)
    look(source, 0)
    os.mkfifo(logs / "gcs_server.out")
    (logs / "raylet.out").mkdir()
    reading = look(source, 10)
    assert (reading.trouble, kinds(reading)) == (None, {})
    source.close()


def test_files_and_events_are_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(session_logs, "FILE_LIMIT", 3)
    monkeypatch.setattr(ray_module, "EVENT_LIMIT", 10)
    logs = session(tmp_path)
    source = make(tmp_path)
    look(source, 0)
    line = "Health check failed for node " + "ab" * 28 + "\n"
    write_files(logs, {f"job-driver-{number}.log": line * 20 for number in range(9)})
    reading = look(source, 10)
    assert len(source._logs._files) == 3
    assert len(reading.rows["events"]) == 10
    assert [(gap.table, gap.lost) for gap in reading.gaps] == [("events", 50)]
    source.close()


def append(logs: Path, count: int, text: str) -> None:
    for number in range(count):
        with (logs / f"worker-{number}.err").open("a") as file:
            file.write(text)


def test_of_more_files_than_are_held_open_each_line_is_reported_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_logs, "FILE_LIMIT", 3)
    logs = session(tmp_path)
    append(logs, 9, HANG)
    source = make(tmp_path)
    assert kinds(look(source, 0)) == {}
    append(logs, 9, "something else\n")
    assert [kinds(look(source, 10 * turn)) for turn in range(1, 5)] == [{}] * 4, (
        "what was there before us"
    )
    append(logs, 9, HANG)
    append(logs, 12, HANG)
    found = [kinds(look(source, 10 * turn))["ray_job_hang"] for turn in range(5, 11)]
    assert (sum(found), found[-2:]) == (9 * 2 + 3, [0, 0])
    source.close()


def test_files_that_come_back_are_not_told_again(tmp_path: Path) -> None:
    logs = session_of_a_container(tmp_path, "gcs_server", "raylet")
    source = make(tmp_path)
    look(source, 0)
    append(logs, 2, HANG)
    assert kinds(look(source, 10)) == {"ray_job_hang": 2}
    (tmp_path / "proc/77/root").rename(
        tmp_path / "proc/78/root"
    )  # the process is gone by which they were reached
    assert kinds(look(source, 20)) == {}
    assert kinds(look(source, 81)) == {}
    append(logs, 1, HANG)
    assert kinds(look(source, 90)) == {"ray_job_hang": 1}
    source.close()


def test_a_file_that_is_moved_away_while_it_is_listed_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = session(tmp_path)
    append(logs, 2, HANG)
    source = make(tmp_path)
    look(source, 0)
    append(logs, 2, HANG)
    listdir = os.listdir
    with monkeypatch.context() as patched:
        patched.setattr(os, "listdir", lambda path: [*listdir(path), "worker-moved.err"])
        assert kinds(look(source, 10)) == {"ray_job_hang": 2}
    assert len(source._logs._files) == 2
    source.close()


def test_how_far_files_were_read_is_kept_of_so_many(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_logs, "_NAMES_LIMIT", 4)
    logs = session(tmp_path)
    source = make(tmp_path)
    for turn in range(3):
        append(logs, 4, HANG)
        assert kinds(look(source, 10 * turn)) == ({"ray_job_hang": 4} if turn else {})
        assert len(source._logs._offsets) == 4
        for number in range(4):
            (logs / f"worker-{number}.err").rename(tmp_path / f"{turn}.{number}")
    source.close()


def test_a_file_that_we_may_not_read_takes_no_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_logs, "FILE_LIMIT", 3)
    logs = session(tmp_path)
    source = make(tmp_path)
    look(source, 0)
    append(logs, 6, HANG)
    monkeypatch.setattr(
        session_logs,
        "open_in_root",
        lambda root, path: (
            None if path[-5:] in (b"3.err", b"4.err", b"5.err") else open_in_root(root, path)
        ),
    )
    found = [kinds(look(source, 10 * turn))["ray_job_hang"] for turn in range(1, 4)]
    assert sum(found) == 3
    source.close()


def test_a_fast_log_is_read_to_its_end(tmp_path: Path) -> None:
    logs = session(tmp_path)
    source = make(tmp_path)
    append(logs, 3, "")
    look(source, 0)
    append(logs, 1, "nothing that tells\n" * 100_000 + HANG)
    append(logs, 2, HANG)
    assert kinds(look(source, 10)) == {"ray_job_hang": 3}
    source.close()


def test_many_fast_logs_are_read_a_piece_each(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_logs, "_ROUND_BYTES", 3 * PIECE_BYTES)
    logs = session(tmp_path)
    source = make(tmp_path)
    append(logs, 4, "")
    look(source, 0)
    append(logs, 4, HANG + "nothing that tells\n" * 20_000 + HANG)
    assert [kinds(look(source, 10 * turn)) for turn in (1, 2, 3)] == [
        {"ray_job_hang": 4},
        {"ray_job_hang": 4},
        {},
    ]
    source.close()


def test_no_descriptor_is_left(tmp_path: Path) -> None:
    before = os.listdir("/proc/self/fd")
    logs = session(tmp_path)
    source = make(tmp_path)
    look(source, 0)
    shutil.copytree(DATA / "killed_node", logs, dirs_exist_ok=True)
    look(source, 10)
    source.close()
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_one_user_who_calls_his_processes_raylet_takes_not_all_places(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    processes = [(tmp_path / f"proc/{pid}", 65534 if pid < 50 else 0) for pid in range(1, 60)]
    monkeypatch.setattr(session_logs, "_ray_processes", lambda _root: iter(processes))
    logs = session_logs.SessionLogs(tmp_path, "/tmp/ray")
    monkeypatch.setattr(logs, "_identity", lambda root: (1, hash(root)))
    logs.find_roots()
    pids = [int(root.parent.name) for root in logs._roots[1:]]
    assert len([pid for pid in pids if pid < 50]) == 4
    assert len([pid for pid in pids if pid >= 50]) == 3
