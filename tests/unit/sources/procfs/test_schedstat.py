"""Run delay of the softirq threads and the `runqueue` table."""

import os
from pathlib import Path

import pytest
from tests.synthetic_root import at_second, make_root, write_files

from necroscope.errors import SourceUnavailable
from necroscope.model.tables import TABLES
from necroscope.sources.procfs.schedstat import RunQueue, parse, parse_core, parse_state

DATA = Path(__file__).parents[3] / "data/procfs/linux-6.18-vm"
COLUMNS = [column.name for column in TABLES["runqueue"].columns]


def _napi(pid: int, comm: str, core: int) -> dict[str, str]:
    rest = " ".join(["2", *["0"] * 34, str(core), *["0"] * 13])
    return {
        f"proc/{pid}/comm": f"{comm}\n",
        f"proc/{pid}/schedstat": "5 6 7\n",
        f"proc/{pid}/stat": f"{pid} ({comm}) R {rest}\n",
    }


def test_a_capture_is_read() -> None:
    run_ns, delay_ns, slices = parse((DATA / "ksoftirqd-schedstat").read_bytes())
    assert min(run_ns, delay_ns, slices) > 0
    stat = (DATA / "ksoftirqd-stat").read_bytes()
    assert (parse_state(stat), parse_core(stat)) == ("S", 0)


def test_a_thread_name_full_of_brackets_does_not_shift_the_fields() -> None:
    stat = b"7 (napi/e) R 9) (x) D 2 " + b"0 " * 34 + b"5 0 0\n"
    assert (parse_state(stat), parse_core(stat)) == ("D", 5)


def test_rows_are_time_run_and_waited_since_the_row_before(tmp_path: Path) -> None:
    source = RunQueue(make_root(tmp_path, 2))
    assert source.read(at_second(0)).rows == {"runqueue": []}
    make_root(tmp_path, 2, step=1)
    now = at_second(1)
    rows = source.read(now).rows["runqueue"]
    assert rows[1] == (now.time_ns, 1, 16, "ksoftirqd/1", "S", 1_000_000_000, 2_000_000, 40_000, 5)
    assert len(rows[1]) == len(COLUMNS)
    source.close()


def test_a_thread_that_waits_shows_as_runnable_without_run_time(tmp_path: Path) -> None:
    source = RunQueue(make_root(tmp_path, 1))
    source.read(at_second(0))
    stat = tmp_path / "proc/10/stat"
    stat.write_text(stat.read_text().replace(") S ", ") R "))
    row = dict(zip(COLUMNS, source.read(at_second(1)).rows["runqueue"][0], strict=True))
    assert (row["state"], row["run_ns"], row["delay_ns"]) == ("R", 0, 0)
    source.close()


def test_a_napi_thread_is_found_within_a_minute_and_its_core_followed(tmp_path: Path) -> None:
    source = RunQueue(make_root(tmp_path, 1))
    source.read(at_second(0))
    write_files(tmp_path, {**_napi(900, "napi/eth0-8193", 3), "proc/2/task/2/children": "10 900 "})
    assert len(source.read(at_second(1)).rows["runqueue"]) == 1
    source.read(at_second(60))
    rows = source.read(at_second(61)).rows["runqueue"]
    assert [(row[1], row[3]) for row in rows] == [(0, "ksoftirqd/0"), (3, "napi/eth0-8193")]
    source.close()


def test_a_thread_that_vanished_is_dropped_and_others_looked_for(tmp_path: Path) -> None:
    make_root(tmp_path, 1)
    write_files(
        tmp_path,
        {**_napi(900, "napi/a", 0), **_napi(901, "napi/b", 0), "proc/2/task/2/children": "10 900 "},
    )
    source = RunQueue(tmp_path)
    source.read(at_second(0))
    # An open descriptor of a thread that is gone gives an error in the kernel and an empty text
    # here.
    write_files(tmp_path, {"proc/900/schedstat": "", "proc/2/task/2/children": "10 901 "})
    assert [row[3] for row in source.read(at_second(1)).rows["runqueue"]] == ["ksoftirqd/0"]
    source.read(at_second(2))
    assert [row[3] for row in source.read(at_second(3)).rows["runqueue"]] == [
        "ksoftirqd/0",
        "napi/b",
    ]
    source.close()


def test_without_the_list_of_children_parents_are_asked(tmp_path: Path) -> None:
    make_root(tmp_path, 2)
    (tmp_path / "proc/2/task/2/children").unlink()
    impostor = {
        "comm": "ksoftirqd/9\n",
        "stat": "500 (ksoftirqd/9) S 1 0 0\n",
        "schedstat": "5 6 7\n",
    }
    write_files(tmp_path / "proc/500", impostor)
    source = RunQueue(tmp_path)
    source.read(at_second(0))
    assert sorted(str(row[3]) for row in source.read(at_second(1)).rows["runqueue"]) == [
        "ksoftirqd/0",
        "ksoftirqd/1",
    ]
    source.close()


def test_in_a_pid_namespace_of_its_own_the_hint_says_so(tmp_path: Path) -> None:
    write_files(tmp_path, {"proc/2/comm": "bash\n"})
    with pytest.raises(SourceUnavailable, match="not kthreadd") as caught:
        RunQueue(tmp_path).read(at_second(0))
    assert "hostPID" in caught.value.hint


def test_a_kernel_that_does_not_count_gives_no_zeros(tmp_path: Path) -> None:
    make_root(tmp_path, 1)
    write_files(tmp_path, {"proc/10/schedstat": "0 0 0\n"})
    source = RunQueue(tmp_path)
    with pytest.raises(SourceUnavailable, match="does not count"):
        source.read(at_second(0))
    source.close()


@pytest.mark.kernel
def test_this_machine_has_a_thread_for_each_core() -> None:
    source = RunQueue(Path("/"))
    source.read(at_second(0))
    rows = source.read(at_second(1)).rows["runqueue"]
    assert {row[1] for row in rows if str(row[3]).startswith("ksoftirqd/")} >= set(
        os.sched_getaffinity(0)
    )
    source.close()
