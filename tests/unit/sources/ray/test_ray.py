"""Ray as a source: real session directories, followed, told once, whatever somebody puts in their
place.
"""

import os
import shutil
from collections import Counter
from pathlib import Path

import pytest
from tests.fake_daemon import http, never, tcp_daemon
from tests.synthetic_root import write_files
from tests.unit.sources.ray.ray_session import (
    DATA,
    FROZEN,
    HEALTH,
    READ_NS,
    kinds,
    look,
    make,
    session,
)

from necroscope.errors import UsageError
from necroscope.model.units import NS_PER_S
from necroscope.sources.ray import session_logs
from necroscope.sources.ray.dashboard import Dashboard, parse_address


def test_a_frozen_node_is_reported_once_by_all_the_files_together(tmp_path: Path) -> None:
    logs = session(tmp_path)
    source = make(tmp_path)
    assert kinds(look(source, 0)) == {}
    shutil.copytree(DATA / "frozen_node", logs, dirs_exist_ok=True)
    reading = look(source, 10)
    assert kinds(reading) == FROZEN
    dead = next(row for row in reading.rows["events"] if row[1] == "ray_node_dead")
    assert (dead[0], dead[8], dead[9]) == (1_794_793_317_496_000_000, 3, False)
    assert kinds(look(source, 20)) == {}
    source.close()


def test_what_was_there_before_us_is_not_told(tmp_path: Path) -> None:
    shutil.copytree(DATA / "frozen_node", session(tmp_path), dirs_exist_ok=True)
    source = make(tmp_path)
    assert kinds(look(source, 0)) == {}
    source.close()


def removed(timestamp: str) -> str:
    fields = '"message": "gone", "custom_fields": {"node_id": "ab"}'
    return (
        f'{{"source_type": "GCS", "label": "RAY_NODE_REMOVED", "timestamp": {timestamp},'
        f" {fields}}}\n"
    )


def test_numbers_that_no_clock_shows_cost_neither_the_others_nor_a_descriptor(
    tmp_path: Path,
) -> None:
    before = os.listdir("/proc/self/fd")
    logs = session(tmp_path)
    source = make(tmp_path)
    look(source, 0)
    write_files(
        logs,
        {
            "events/event_GCS.log": (
                removed("Infinity") + removed("1e999") + removed(str(READ_NS // NS_PER_S - 9))
            )
        },
    )
    reading = look(source, 10)
    assert (reading.trouble, [row[0] for row in reading.rows["events"]]) == (
        None,
        [READ_NS - 9 * NS_PER_S],
    )
    source.close()
    assert len(os.listdir("/proc/self/fd")) == len(before)


@pytest.mark.parametrize("timestamp", ["0", "-1e30", "1e30", str(READ_NS)])
def test_a_stamp_that_cannot_be_is_not_believed(tmp_path: Path, timestamp: str) -> None:
    logs = session(tmp_path)
    source = make(tmp_path)
    look(source, 0)
    write_files(
        logs,
        {
            "events/event_GCS.log": removed(timestamp),
            "gcs_server.out": HEALTH.replace("2026", "0001"),
        },
    )
    assert [row[0] for row in look(source, 10).rows["events"]] == [READ_NS, READ_NS]
    source.close()


def test_a_round_that_fails_is_trouble_and_loses_no_descriptor(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = os.listdir("/proc/self/fd")
    logs = session(tmp_path)
    write_files(logs, {"raylet.out": ""})
    source = make(tmp_path)
    look(source, 0)
    (logs / "raylet.out").unlink()
    write_files(logs, {"events/event_GCS.log": removed("1")})
    with monkeypatch.context() as patched:
        patched.setattr(session_logs, "_events", lambda *_: 1 / 0)
        assert look(source, 10).trouble is not None
    assert kinds(look(source, 20)) == {"ray_node_dead": 1}
    source.close()
    assert len(os.listdir("/proc/self/fd")) == len(before)


def test_without_ray_nothing_is_missed(tmp_path: Path) -> None:
    source = make(tmp_path)
    assert look(source, 0).trouble is None
    source.close()


def test_the_dashboard_tells_of_what_died_since_and_not_of_what_was_dead(tmp_path: Path) -> None:
    no_nodes = b'{"data": {"result": {"result": []}}}'
    answers: dict[str, bytes | int] = {
        "/api/gcs_healthz": b"success",
        "/api/v0/nodes": no_nodes,
        "/api/jobs/": b"[]",
    }
    with tcp_daemon(http(answers)) as daemon:
        source = make(tmp_path, Dashboard(f"http://127.0.0.1:{daemon.port}"))
        look(source, 0)
        answers["/api/v0/nodes"] = (DATA / "dashboard_nodes.json").read_bytes()
        answers["/api/jobs/"] = (DATA / "dashboard_jobs.json").read_bytes()
        assert kinds(look(source, 61)) == {"ray_node_dead": 1, "ray_job_failed": 1}
        answers["/api/gcs_healthz"] = 503
        assert kinds(look(source, 122)) == {"ray_health_check_failed": 1}
        source.close()
        again = make(tmp_path, Dashboard(f"http://127.0.0.1:{daemon.port}"))
        assert kinds(look(again, 0)) - Counter({"ray_health_check_failed": 1}) == {}
        again.close()


def test_a_dashboard_that_hangs_is_trouble_and_logs_are_read_on(tmp_path: Path) -> None:
    logs = session(tmp_path)
    with tcp_daemon(never) as daemon:
        source = make(tmp_path, Dashboard(f"127.0.0.1:{daemon.port}", timeout_s=0.2))
        reading = look(source, 0)
        assert reading.trouble is not None
        assert "did not answer in time" in reading.trouble.facts
        write_files(logs, {"gcs_server.out": "Health check failed for node " + "ab" * 28 + "\n"})
        reading = look(source, 10)
        assert kinds(reading) == {"ray_health_check_failed": 1}
        assert reading.trouble is not None, "until the dashboard was asked again"
        source.close()


ENDLESS = (
    b'{"data": {"result": {"result": [{"state": "DEAD", "node_id": "ab", "end_time_ms":'
    b" Infinity}]}}}"
)


@pytest.mark.parametrize("body", [b"<html>", b"{}", b'{"data": null}', b"[1]", ENDLESS])
def test_a_dashboard_that_answers_nonsense_is_trouble(tmp_path: Path, body: bytes) -> None:
    with tcp_daemon(http({"/": body})) as daemon:
        source = make(tmp_path, Dashboard(f"127.0.0.1:{daemon.port}"))
        trouble = look(source, 0).trouble
        assert trouble is not None
        assert "unknown form" in trouble.facts
        source.close()


def test_a_dashboards_address_is_an_address() -> None:
    assert parse_address("http://localhost:8265/") == ("127.0.0.1", 8265)
    assert parse_address("[::1]:8265") == ("::1", 8265)
    for text in (
        "http://head.example:8265",
        "127.0.0.1",
        "127.0.0.1:99999",
        "https://127.0.0.1:1",
        "",
    ):
        with pytest.raises(UsageError):
            parse_address(text)
