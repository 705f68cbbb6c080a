"""Drivers of Ray by the logs that their cores open."""

import os
from pathlib import Path

from necroscope.sources.jobs.ray_drivers import list_drivers, session_logs

SESSION = "2026-11-18_13-00-00_123456_77"
CORE = "python-core-driver-02000000" + "f" * 48


def test_a_driver_is_known_by_the_log_of_its_core(tmp_path: Path) -> None:
    folder = tmp_path / f"ray/session_{SESSION}/logs"
    folder.mkdir(parents=True)
    for name in (f"{CORE}_4711.log", f"{CORE}_x.log", "python-core-worker-0a_12.log", "raylet.err"):
        (folder / name).touch()
    os.utime(folder / f"{CORE}_4711.log", ns=(5, 7_000_000_000))
    logs = session_logs(f"/ray/session_{SESSION}/logs/raylet.err")
    assert logs is not None
    root = os.open(tmp_path, os.O_PATH)
    [driver] = list_drivers(root, logs)
    os.close(root)
    assert (driver.pid, driver.written_ns) == (4711, 7_000_000_000)
    assert (driver.member.job, driver.member.role) == (f"ray/{SESSION}/02000000", "driver")


def test_a_session_that_is_gone_has_no_drivers(tmp_path: Path) -> None:
    logs = session_logs(f"/ray/session_{SESSION}/logs/raylet.err")
    assert logs is not None
    root = os.open(tmp_path, os.O_PATH)
    assert list_drivers(root, logs) == []
    os.close(root)
    assert session_logs("/var/log/train.err") is None
