"""/proc/stat and the `cores` table."""

from pathlib import Path

import pytest
from tests.synthetic_root import at_second, make_root, write_files

from necroscope.errors import SourceUnavailable
from necroscope.model.tables import TABLES
from necroscope.sources.procfs.stat import Cores, parse

DATA = Path(__file__).parents[3] / "data/procfs"
COLUMNS = [column.name for column in TABLES["cores"].columns]


def _stat(*cores: str) -> dict[str, str]:
    lines = "\n".join(["cpu  1 1 1 1 1 1 1 1 0 0", *cores])
    return {"proc/stat": f"{lines}\nintr 5 1 2\nctxt 7\n"}


def test_a_capture_has_a_line_for_each_core() -> None:
    cores = parse((DATA / "linux-6.18-vm/stat").read_bytes())
    assert list(cores) == [0, 1]
    assert all(len(ticks) == 9 for ticks in cores.values())
    assert cores[0][3] > cores[0][2] > 0


def test_guest_time_is_counted_once_so_that_modes_add_up() -> None:
    cores = parse((DATA / "stat-4.15-cpu1-offline-guest").read_bytes())
    assert list(cores) == [0, 2]
    assert cores[0] == (565 - 100, 17 - 5, 720, 5655859, 1837, 63, 219, 0, 105)


@pytest.mark.parametrize(
    "text", [b"", b"cpu  1 2 3\n", b"cpu  1 1 1 1 1 1 1 1 0 0\ncpu0 1 1 1", b"hello\n"]
)
def test_an_empty_or_cut_file_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match="missing or cut"):
        parse(text)


def test_rows_are_nanoseconds_since_the_row_before(tmp_path: Path) -> None:
    source = Cores(make_root(tmp_path, 2), ticks_per_s=100)
    assert source.read(at_second(0)).rows["cores"] == []
    make_root(tmp_path, 2, step=1)
    now = at_second(1.25)
    rows = source.read(now).rows["cores"]
    assert [row[:3] for row in rows] == [
        (now.time_ns, 0, 1_250_000_000),
        (now.time_ns, 1, 1_250_000_000),
    ]
    modes = dict(zip(COLUMNS, rows[1], strict=True))
    assert (modes["user_ns"], modes["system_ns"], modes["idle_ns"]) == (
        600_000_000,
        300_000_000,
        100_000_000,
    )
    assert modes["steal_ns"] == modes["guest_ns"] == 0
    source.close()


def test_two_thousand_cores_all_have_rows(tmp_path: Path) -> None:
    source = Cores(tmp_path)
    for second in range(2):
        write_files(
            tmp_path,
            _stat(*(f"cpu{cpu} {second} 0 0 5000000000 0 0 0 0 0 0" for cpu in range(2000))),
        )
        reading = source.read(at_second(second))
    assert len(source.online) == len(reading.rows["cores"]) == 2000
    assert reading.gaps == []
    source.close()


def test_a_core_going_offline_is_a_gap_and_no_row(tmp_path: Path) -> None:
    source = Cores(tmp_path)
    write_files(tmp_path, _stat("cpu0 5 0 0 5 0 0 0 0 0 0", "cpu1 5 0 0 5 0 0 0 0 0 0"))
    source.read(at_second(0))
    assert source.online == {0, 1}
    write_files(tmp_path, _stat("cpu0 6 0 0 5 0 0 0 0 0 0"))
    reading = source.read(at_second(1))
    assert source.online == {0}
    assert [row[1] for row in reading.rows["cores"]] == [0]
    assert [(gap.table, gap.cpu, gap.cause) for gap in reading.gaps] == [
        ("cores", 1, "cpu 1 went offline")
    ]
    assert source.read(at_second(2)).gaps == []
    source.close()


def test_a_core_back_online_starts_anew_and_tells_how_long_it_was_away(tmp_path: Path) -> None:
    source = Cores(tmp_path)
    both = _stat("cpu0 5 0 0 5 0 0 0 0 0 0", "cpu1 5 0 0 5 0 0 0 0 0 0")
    for second, files in enumerate((both, _stat("cpu0 6 0 0 5 0 0 0 0 0 0"), both)):
        write_files(tmp_path, files)
        reading = source.read(at_second(second))
    assert [row[1] for row in reading.rows["cores"]] == []
    away = [gap for gap in reading.gaps if gap.cpu == 1]
    assert [(gap.from_ns, gap.to_ns, gap.cause) for gap in away] == [
        (at_second(0).time_ns, at_second(2).time_ns, "cpu 1 was offline")
    ]
    write_files(tmp_path, _stat("cpu0 7 0 0 5 0 0 0 0 0 0", "cpu1 7 0 0 5 0 0 0 0 0 0"))
    assert [row[1] for row in source.read(at_second(3)).rows["cores"]] == [0, 1]
    source.close()


def test_idle_and_iowait_that_fall_count_as_nothing(tmp_path: Path) -> None:
    source = Cores(tmp_path, ticks_per_s=100)
    write_files(tmp_path, _stat("cpu0 5 0 5 500 50 0 0 0 0 0"))
    source.read(at_second(0))
    write_files(tmp_path, _stat("cpu0 5 0 5 480 40 0 0 0 0 0"))
    reading = source.read(at_second(1))
    assert reading.gaps == []
    assert reading.rows["cores"][0][3:] == (0,) * 9
    source.close()


def test_counters_that_start_anew_are_a_gap_and_never_negative(tmp_path: Path) -> None:
    source = Cores(tmp_path)
    write_files(tmp_path, _stat("cpu0 500 0 500 500 50 0 0 0 0 0"))
    source.read(at_second(0))
    write_files(tmp_path, _stat("cpu0 1 0 2 900 50 0 0 0 0 0"))
    reading = source.read(at_second(1))
    assert reading.rows["cores"] == []
    assert [gap.cause for gap in reading.gaps] == ["the counters of cpu 0 started again"]
    source.close()


def test_an_empty_file_between_reads_is_unavailable_and_then_well_again(tmp_path: Path) -> None:
    source = Cores(make_root(tmp_path, 2))
    source.read(at_second(0))
    write_files(tmp_path, {"proc/stat": ""})
    with pytest.raises(SourceUnavailable, match="proc/stat"):
        source.read(at_second(1))
    make_root(tmp_path, 2, step=2)
    assert [row[2] for row in source.read(at_second(2)).rows["cores"]] == [2_000_000_000] * 2
    source.close()


@pytest.mark.kernel
def test_the_modes_of_this_machine_add_up_to_no_more_than_passed() -> None:
    source = Cores(Path("/"))
    source.read(at_second(0))
    rows = source.read(at_second(1)).rows["cores"]
    assert {row[1] for row in rows} == source.online
    assert all(len(row) == len(COLUMNS) for row in rows)
    source.close()
