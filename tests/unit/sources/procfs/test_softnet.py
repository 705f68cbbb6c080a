"""/proc/net/softnet_stat and the `softnet` table."""

from pathlib import Path

import pytest
from tests.synthetic_root import at_second, make_root, write_files

from necroscope.errors import SourceUnavailable
from necroscope.model.tables import TABLES
from necroscope.sources.procfs.softnet import SoftnetStat, parse

DATA = Path(__file__).parents[3] / "data/procfs"


def test_a_kernel_that_numbers_its_rows_is_believed() -> None:
    lines = parse((DATA / "softnet_stat-5.10").read_bytes(), online=None)
    assert lines == {0: ((0x272D0, 0, 0x34, 0x10, 2), 5), 2: ((0x34E5E, 1, 0, 0, 0), 0)}


def test_rows_without_numbers_are_those_of_the_online_cores() -> None:
    lines = parse((DATA / "softnet_stat-5.4").read_bytes(), online=(0, 2))
    assert lines == {0: ((0x272D0, 0, 0x34, 0x10, 2), None), 2: ((0x34E5E, 1, 0, 0, 0), None)}


def test_rows_that_do_not_fit_the_online_cores_are_refused() -> None:
    with pytest.raises(ValueError, match="2 lines for 3 online"):
        parse((DATA / "softnet_stat-5.4").read_bytes(), online=(0, 1, 2))


def test_a_capture_of_fifteen_columns_is_read() -> None:
    assert list(parse((DATA / "linux-6.18-vm/softnet_stat").read_bytes(), None)) == [0, 1]


@pytest.mark.parametrize(
    "text",
    ["", "0000\n", "00000007 00000000\n", "not hex at all\n", "00000007 " * 11 + "\n0000000"],
)
def test_an_empty_or_cut_file_is_unavailable(tmp_path: Path, text: str) -> None:
    source = SoftnetStat(make_root(tmp_path, 2))
    write_files(tmp_path, {"proc/1/net/softnet_stat": text})
    with pytest.raises(SourceUnavailable):
        source.read(at_second(0))
    source.close()


def test_rows_are_increases_and_the_backlog_is_its_length_now(tmp_path: Path) -> None:
    source = SoftnetStat(make_root(tmp_path, 2))
    assert source.read(at_second(0)).rows == {}
    make_root(tmp_path, 2, step=2)
    now = at_second(1)
    rows = source.read(now).rows["softnet"]
    assert rows[1] == (now.time_ns, 1, 1_000_000_000, 1000, 0, 2, 0, 0, 0)
    assert len(rows[1]) == len(TABLES["softnet"].columns)
    source.close()


def test_the_namespace_of_the_first_process_comes_before_our_own(tmp_path: Path) -> None:
    words = " ".join(["00000000"] * 12)
    write_files(
        tmp_path,
        {
            "proc/1/net/softnet_stat": f"{words} 00000007\n",
            "proc/net/softnet_stat": f"{words} 00000009\n",
        },
    )
    source = SoftnetStat(tmp_path)
    source.read(at_second(0))
    assert [row[1] for row in source.read(at_second(1)).rows["softnet"]] == [7]
    source.close()


def test_a_kernel_without_the_backlog_has_none_and_one_gap(tmp_path: Path) -> None:
    text = (DATA / "softnet_stat-5.4").read_text()
    write_files(tmp_path, {"proc/net/softnet_stat": text, "sys/devices/system/cpu/online": "0,2\n"})
    source = SoftnetStat(tmp_path)
    assert len(source.read(at_second(0)).gaps) == 1
    reading = source.read(at_second(1))
    assert reading.gaps == []
    assert [(row[1], row[-1]) for row in reading.rows["softnet"]] == [(0, None), (2, None)]
    source.close()
