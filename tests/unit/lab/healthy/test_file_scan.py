"""A file that is read again and again from the disk, and how much of it."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from necroscope.lab.healthy.file_scan import FileScan, write_file
from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import ImpactMissing

NS = 1_000_000_000
STAGE: Any = SimpleNamespace(core=1, other_cores=[0], seconds=15.0, probe_logs=None)


def measured(bytes_per_s: int) -> Measurements:
    def stat(second: int) -> str:
        return "".join(
            f"cpu{core} 0 0 {second * 10} {second * 80} {second * 10} 0 0 0\n" for core in (0, 1)
        )

    readings = {
        "/proc/stat": [(second * NS, stat(second)) for second in range(30)],
        "/log": [(second * NS, f"read {second * bytes_per_s}\n") for second in range(30)],
    }
    return Measurements(readings, (0, 10 * NS), (10 * NS, 25 * NS))


def scan() -> FileScan:
    one = FileScan()
    one.log = "/log"
    return one


def test_the_rate_is_in_the_label() -> None:
    assert scan().verify(STAGE, measured(50_000_000)).impact["bytes_per_s"] == pytest.approx(50e6)


def test_a_disk_that_gives_nothing_is_no_scan() -> None:
    with pytest.raises(ImpactMissing, match="bytes per second"):
        scan().verify(STAGE, measured(1_000))


def test_the_file_has_its_size(tmp_path: Path) -> None:
    write_file(str(tmp_path / "file"), 3 << 20)
    assert (tmp_path / "file").stat().st_size == 3 << 20
