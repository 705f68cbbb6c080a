"""/proc/softirqs and the `softirqs` table."""

from pathlib import Path

import pytest
from tests.synthetic_root import at_second, make_root, write_files

from necroscope.errors import SourceUnavailable
from necroscope.model.tables import SOFTIRQ_VECTORS, TABLES
from necroscope.sources.procfs.softirqs import Softirqs, parse

DATA = Path(__file__).parents[3] / "data/procfs"


def _softirqs(counts: dict[str, tuple[int, ...]], cpus: int = 2) -> dict[str, str]:
    lines = [
        " ".join(f"CPU{cpu}" for cpu in range(cpus)),
        *(f"{name}: {' '.join(map(str, n))}" for name, n in counts.items()),
    ]
    return {"proc/softirqs": "\n".join(lines) + "\n"}


def _all(*counts: int) -> dict[str, tuple[int, ...]]:
    return {vector.upper(): counts for vector in SOFTIRQ_VECTORS}


def test_a_capture_gives_each_core_its_vectors() -> None:
    counts, missing = parse((DATA / "linux-6.18-vm/softirqs").read_bytes())
    assert list(counts) == [0, 1]
    assert missing == ()
    assert counts[0][SOFTIRQ_VECTORS.index("timer")] > 10_000
    assert counts[1][SOFTIRQ_VECTORS.index("block")] > 20_000


def test_a_core_that_stands_still_has_a_row_of_zeros(tmp_path: Path) -> None:
    source = Softirqs(tmp_path)
    write_files(tmp_path, _softirqs(_all(5, 5)))
    assert source.read(at_second(0)).rows == {}
    write_files(tmp_path, _softirqs(_all(9, 5)))
    rows = source.read(at_second(1)).rows["softirqs"]
    assert [row[3:] for row in rows] == [(4,) * 10, (0,) * 10]
    assert all(len(row) == len(TABLES["softirqs"].columns) for row in rows)
    source.close()


def test_a_possible_core_that_is_not_online_has_no_row(tmp_path: Path) -> None:
    source = Softirqs(tmp_path)
    write_files(tmp_path, {**_softirqs(_all(5, 0)), "sys/devices/system/cpu/online": "0\n"})
    source.read(at_second(0))
    assert [row[1] for row in source.read(at_second(1)).rows["softirqs"]] == [0]
    write_files(tmp_path, {"sys/devices/system/cpu/online": "0-1\n"})
    assert [row[1] for row in source.read(at_second(2)).rows["softirqs"]] == [0]
    assert [row[1] for row in source.read(at_second(3)).rows["softirqs"]] == [0, 1]
    source.close()


def test_a_counter_of_32_bits_that_wraps_goes_on(tmp_path: Path) -> None:
    source = Softirqs(tmp_path)
    write_files(tmp_path, _softirqs(_all(2**32 - 10, 5)))
    source.read(at_second(0))
    write_files(tmp_path, _softirqs(_all(20, 5)))
    assert source.read(at_second(1)).rows["softirqs"][0][3:] == (30,) * 10
    source.close()


def test_counters_that_start_anew_give_no_row(tmp_path: Path) -> None:
    source = Softirqs(tmp_path)
    for second, count in enumerate((1000, 5)):
        write_files(tmp_path, _softirqs(_all(count, 5)))
        reading = source.read(at_second(second))
    assert [row[1] for row in reading.rows["softirqs"]] == [1]
    source.close()


def test_a_vector_this_kernel_lacks_is_none_and_one_gap(tmp_path: Path) -> None:
    source = Softirqs(tmp_path)
    counts = _all(5, 5)
    del counts["IRQ_POLL"]
    write_files(tmp_path, _softirqs(counts))
    assert [gap.cause for gap in source.read(at_second(0)).gaps] == [
        "this kernel has no softirq vector irq_poll"
    ]
    reading = source.read(at_second(1))
    assert reading.gaps == []
    assert reading.rows["softirqs"][0][3:] == (0, 0, 0, 0, 0, None, 0, 0, 0, 0)
    source.close()


@pytest.mark.parametrize("text", ["", "CPU0 CPU1\n", "CPU0 CPU1\nTIMER: 5\n", "  \n"])
def test_an_empty_or_cut_file_is_unavailable(tmp_path: Path, text: str) -> None:
    source = Softirqs(make_root(tmp_path, 2))
    write_files(tmp_path, {"proc/softirqs": text})
    with pytest.raises(SourceUnavailable, match="known format"):
        source.read(at_second(0))
    source.close()
