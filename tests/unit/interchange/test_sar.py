"""sar's day, as text, as JSON of sadf and as sadf reads the binary file."""

import shutil
from pathlib import Path

import pytest

from necroscope.errors import NecroscopeError, UsageError
from necroscope.interchange.detect import FileKind, detect
from necroscope.interchange.sar import read_sar
from necroscope.model.tables import TABLES

DATA = Path(__file__).parents[2] / "data" / "interchange"
S = 10**9
HEADING = "Linux 5.4.0 (node-7) \t04/15/26 \t_x86_64_\t(2 CPU)\n\n"
DAY = f"""{HEADING}12:00:01 AM     CPU     %user     %nice   %system   %iowait    %steal     %idle
12:10:01 AM     all     10.00      0.00     45.00      0.00      0.00     45.00
12:10:01 AM       0     10.00      0.00     90.00      0.00      0.00      0.00
12:10:01 AM       1     10.00      0.00      0.00      0.00      0.00     90.00
11:50:01 PM       0      0.00      0.00    100.00      0.00      0.00      0.00
Average:          0     10.00      0.00     90.00      0.00      0.00      0.00

12:00:01 AM  pgpgin/s pgpgout/s   fault/s  majflt/s
12:10:01 AM      1.00      2.00  50000.00      3.00

12:00:01 AM    call/s retrans/s    read/s
12:10:01 AM      7.00      8.00      9.00

12:00:01 AM  atmptf/s  estres/s retrans/s isegerr/s   orsts/s
12:10:01 AM      0.00      0.00     20.00      0.00      1.00
"""


def rows_of(path: Path, table: str, **options: int) -> list[dict[str, object]]:
    names = [column.name for column in TABLES[table].columns]
    return [dict(zip(names, row, strict=True)) for row in read_sar(path, **options).rows[table]]


@pytest.mark.parametrize("name", ["sar.txt", "sar.json", "sa15"])
def test_text_json_and_binary_of_one_day_say_the_same(name: str) -> None:
    if name == "sa15" and shutil.which("sadf") is None:
        pytest.skip("sadf is not installed")
    assert detect(DATA / name) is FileKind.SAR
    cores, memory = rows_of(DATA / name, "cores"), rows_of(DATA / name, "memory")
    assert [(row["cpu"], row["elapsed_ns"]) for row in cores[:2]] == [(0, S), (1, S)]
    assert cores[0]["system_ns"] == 551_000_000
    assert (memory[0]["pgfault"], memory[0]["free_bytes"]) == (65_108, 13_301_108_736)


def test_each_section_of_the_text_has_the_whole_day(tmp_path: Path) -> None:
    path = tmp_path / "sar15"
    path.write_text(DAY)
    cores = rows_of(path, "cores")
    assert [row["time"] for row in cores] == [
        1_776_211_801 * S,
        1_776_211_801 * S,
        1_776_297_001 * S,
    ]
    assert cores[0]["system_ns"] == 540 * S
    [memory] = rows_of(path, "memory")
    assert (memory["time"], memory["pgfault"]) == (1_776_211_801 * S, 30_000_000)


def test_calls_that_nfs_sends_again_are_not_segments_of_tcp(tmp_path: Path) -> None:
    path = tmp_path / "sar15"
    path.write_text(DAY)
    [network] = rows_of(path, "network")
    assert network["tcp_retransmits"] == 20 * 600


def test_times_without_a_zone_are_moved_by_the_offset_and_those_in_utc_are_not() -> None:
    moved = rows_of(DATA / "sar.txt", "cores", utc_offset_s=7200)[0]["time"]
    fixed = rows_of(DATA / "sar.json", "cores", utc_offset_s=7200)[0]["time"]
    assert (moved, fixed) == (1_794_977_768 * S, 1_794_984_968 * S)


def test_a_binary_file_without_sadf_gets_the_way_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "which", lambda _: None)
    with pytest.raises(UsageError) as caught:
        read_sar(DATA / "sa15")
    assert "sadf -j FILE -- -A" in caught.value.hint


@pytest.mark.parametrize(
    "content",
    [
        HEADING.encode(),
        b'{"sysstat": {"hosts": [{"statistics": [{"timestamp": {"date": 7}}]}]}}',
        b'{"sysstat": {"hosts": 5}}',
        b'{"sysstat"',
        b"\x96\xd5" + bytes(100),
        DAY.replace("45.00", "1e999").replace("04/15/26", "99/99/99").encode(),
    ],
)
def test_damaged_reports_end_with_one_of_our_errors(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "sar"
    path.write_bytes(content)
    with pytest.raises(NecroscopeError):
        read_sar(path)
