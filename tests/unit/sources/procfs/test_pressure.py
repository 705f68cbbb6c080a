"""/proc/pressure and the `pressure` table."""

from pathlib import Path

import pytest
from tests.synthetic_root import at_second, make_root, write_files

from necroscope.errors import SourceUnavailable
from necroscope.sources.procfs.pressure import Pressure, parse

DATA = Path(__file__).parents[3] / "data/procfs"


def test_totals_are_microseconds_in_the_kernel_and_nanoseconds_here() -> None:
    assert parse((DATA / "pressure-cpu-5.4").read_bytes()) == (15_000, None)
    assert parse((DATA / "pressure-irq-6.1").read_bytes()) == (None, 4_711_000)
    some_ns, full_ns = parse((DATA / "linux-6.18-vm/pressure-io").read_bytes())
    assert some_ns is not None
    assert full_ns is not None
    assert some_ns > full_ns > 0


def test_rows_are_stalled_time_since_the_row_before(tmp_path: Path) -> None:
    source = Pressure(make_root(tmp_path, 2))
    assert source.read(at_second(0)).rows == {}
    make_root(tmp_path, 2, step=1)
    now = at_second(1)
    assert source.read(now).rows["pressure"] == [
        (now.time_ns, resource, 1_000_000_000, 200_000, 200_000)
        for resource in ("cpu", "memory", "io")
    ]
    source.close()


def test_an_absent_irq_file_is_no_gap_and_a_present_one_a_row(tmp_path: Path) -> None:
    source = Pressure(make_root(tmp_path, 2))
    assert source.read(at_second(0)).gaps == []
    source.close()
    write_files(tmp_path, {"proc/pressure/irq": (DATA / "pressure-irq-6.1").read_text()})
    source = Pressure(tmp_path)
    assert source.read(at_second(0)).gaps == []
    assert source.read(at_second(1)).rows["pressure"][3][1:] == ("irq", 1_000_000_000, None, 0)
    source.close()


def test_a_cpu_without_full_is_none_and_one_gap(tmp_path: Path) -> None:
    make_root(tmp_path, 2)
    write_files(tmp_path, {"proc/pressure/cpu": (DATA / "pressure-cpu-5.4").read_text()})
    source = Pressure(tmp_path)
    assert [gap.cause for gap in source.read(at_second(0)).gaps] == [
        "this kernel's cpu pressure has no full line"
    ]
    reading = source.read(at_second(1))
    assert (reading.gaps, reading.rows["pressure"][0][3:]) == ([], (0, None))
    source.close()


def test_without_pressure_stall_information_the_hint_says_how_to_get_it(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match="proc/pressure/cpu") as caught:
        Pressure(tmp_path).read(at_second(0))
    assert "psi=1" in caught.value.hint


@pytest.mark.parametrize("text", ["", "some avg10=0.00 total=5", "some avg10=0.00\n"])
def test_an_empty_or_cut_file_is_unavailable(tmp_path: Path, text: str) -> None:
    source = Pressure(make_root(tmp_path, 2))
    write_files(tmp_path, {"proc/pressure/io": text})
    with pytest.raises(SourceUnavailable):
        source.read(at_second(0))
    source.close()


def test_totals_that_start_anew_give_no_row(tmp_path: Path) -> None:
    source = Pressure(make_root(tmp_path, 2, step=5))
    source.read(at_second(0))
    make_root(tmp_path, 2, step=0)
    assert source.read(at_second(1)).rows["pressure"] == []
    source.close()
