from datetime import date
from pathlib import Path

import pytest

from necroscope.errors import CorruptData, UsageError
from necroscope.interchange.mpstat import read_mpstat
from necroscope.interchange.sysstat_text import parse_date
from necroscope.model.tables import TABLES

DATA = Path(__file__).parents[2] / "data" / "interchange"
S = 10**9
US = """Linux 5.4.0 (node-7) \t04/15/2026 \t_x86_64_\t(96 CPU)

11:59:58 PM  CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle
11:59:59 PM  all   25.00    0.00   25.00    0.00    0.00    0.00    0.00    0.00    0.00   50.00
11:59:59 PM    0   50.00    0.00   10.00    0.00    0.00    5.00    0.00   10.00    0.00   25.00

11:59:59 PM  CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle
12:00:01 AM    0    0.00    0.00  100.00    0.00    0.00    0.00    0.00    0.00    0.00    0.00
12:00:01 AM    1    0.00    0.00    0.00    0.00    0.00    0.00    0.00    0.00    0.00    0.00

Average:     CPU    %usr   %nice    %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle
Average:       0   25.00    0.00   55.00    0.00    0.00    0.00    0.00    0.00    0.00    0.00
"""


def read(tmp_path: Path, text: str, utc_offset_s: int = 0) -> list[dict[str, object]]:
    path = tmp_path / "mpstat.txt"
    path.write_text(text)
    names = [column.name for column in TABLES["cores"].columns]
    return [
        dict(zip(names, row, strict=True)) for row in read_mpstat(path, utc_offset_s).rows["cores"]
    ]


def test_twelve_hour_clock_passes_midnight_and_offline_cores_have_no_row(tmp_path: Path) -> None:
    first, second = read(tmp_path, US)
    assert first["time"] == 1_776_297_599 * S  # 2026-04-15T23:59:59Z
    assert second["time"] == 1_776_297_601 * S
    assert (first["elapsed_ns"], second["elapsed_ns"]) == (S, 2 * S)
    assert second["system_ns"] == 2 * S


def test_guest_time_is_apart_from_user_time_as_in_cores(tmp_path: Path) -> None:
    first = read(tmp_path, US)[0]
    assert (first["user_ns"], first["guest_ns"]) == (5 * S // 10, S // 10)
    assert (first["softirq_ns"], first["idle_ns"]) == (S // 20, S // 4)


def test_decimal_comma_and_time_zone(tmp_path: Path) -> None:
    text = US.replace(".00", ",00").replace("04/15/2026", "15.04.2026")
    assert [row["system_ns"] for row in read(tmp_path, text)] == [
        row["system_ns"] for row in read(tmp_path, US)
    ]
    assert read(tmp_path, US, 7200)[0]["time"] == (1_776_297_599 - 7200) * S


def test_text_and_json_of_a_real_machine() -> None:
    for name in ("mpstat_24h.txt", "mpstat.json"):
        use = read_mpstat(DATA / name)
        assert (use.host, use.cpus) == ("vm", 2)
        assert len(use.rows["cores"]) == 6
        for row in use.rows["cores"]:
            assert row[2] == S
            assert sum(value for value in row[3:11] if isinstance(value, int)) == pytest.approx(
                S, rel=0.02
            )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-04-15", date(2026, 4, 15)),
        ("04/15/2026", date(2026, 4, 15)),
        ("04/15/26", date(2026, 4, 15)),
        ("15.04.2026", date(2026, 4, 15)),
        ("15/04/2026", date(2026, 4, 15)),
        ("99/99/2026", None),
        ("today", None),
    ],
)
def test_dates(text: str, expected: date | None) -> None:
    assert parse_date(text) == expected


def test_text_without_single_cores_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="single cores"):
        read(
            tmp_path,
            "\n".join(
                line
                for line in US.split("\n")
                if "  all " in line or "Linux" in line or "CPU" in line
            ),
        )


@pytest.mark.parametrize(
    "text",
    [
        '{"sysstat": {"hosts": [',
        '{"sysstat": 3}',
        '{"sysstat": {"hosts": [{"date": 1, "statistics": 5}]}}',
    ],
)
def test_broken_json_is_corrupt_data(text: str, tmp_path: Path) -> None:
    with pytest.raises(CorruptData, match="not JSON of mpstat"):
        read(tmp_path, text)


def test_binary_bytes_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="byte 3"):
        read(tmp_path, "abc\0def")


def test_rows_beyond_the_bound_are_left_out_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("necroscope.interchange.mpstat.MOST_ROWS", 4)
    use = read_mpstat(DATA / "mpstat_24h.txt")
    assert len(use.rows["cores"]) == 4
    assert "2 rows after the first 4 were left out" in use.notes[0]
    times = sorted({row[0] for row in use.rows["cores"]})
    later = read_mpstat(DATA / "mpstat_24h.txt", from_ns=times[-1])
    assert len(later.rows["cores"]) == 4, "a window makes room"
    assert not any("left out" in note for note in later.notes)


def test_a_window_without_a_row_is_no_error() -> None:
    assert read_mpstat(DATA / "mpstat_24h.txt", to_ns=1).rows == {"cores": []}
