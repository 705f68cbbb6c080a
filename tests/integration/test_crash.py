"""kill -9 and SIGSTOP: what was flushed stays, what was missed is reported, and nobody is left
behind.
"""

import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from necroscope.model.units import NS_PER_S
from necroscope.settings import SETTINGS
from necroscope.store.query import Store

pytestmark = [pytest.mark.kernel, pytest.mark.root]
FLUSH = next(setting.default for setting in SETTINGS if setting.name == "flush")
MOST_LOST_NS = 5 * NS_PER_S
STOPPED_S = 15
SPIN = "import ctypes\nctypes.CDLL(None).prctl(15, b'spinner-15', 0, 0, 0)\nwhile True: pass"


def children(pid: int) -> Iterator[tuple[int, str]]:
    """Pid and command line of each child, whichever thread started it."""
    for listing in Path(f"/proc/{pid}/task").glob("*/children"):
        for child in listing.read_text().split():
            try:
                yield (
                    int(child),
                    Path(f"/proc/{child}/cmdline").read_bytes().replace(b"\0", b" ").decode(),
                )
            except FileNotFoundError:
                continue


def sealing_children(pid: int) -> list[int]:
    """A segment of seconds is sealed in a third of a second: who looks for the child must look
    often.
    """
    return [child for child, line in children(pid) if "segment.seal_child" in line]


def is_alive(pid: int) -> bool:
    return Path(f"/proc/{pid}").exists()


def unfinished(directory: Path) -> list[str]:
    return [
        path.name
        for path in directory.iterdir()
        if path.name.endswith((".live", ".sealing", ".removing"))
    ]


def kill_9(recorder) -> int:
    """The moment of death."""
    recorder.kill()
    return time.time_ns()


def wait_until_ended(pids: list[int]) -> None:
    deadline = time.monotonic() + 30
    while any(is_alive(pid) for pid in pids):
        assert time.monotonic() < deadline, "a child outlived its recorder"
        time.sleep(0.05)


def test_kill_9_loses_seconds_and_the_next_recorder_goes_on(record, leaks):
    first = record("--flush", FLUSH)
    first.wait_for_rows("cores", 6)
    orphans = [pid for pid, _ in children(first.process.pid)]
    killed_ns = kill_9(first)
    wait_until_ended(orphans)
    assert orphans, "the lookup process"
    kept = first.rows("cores")
    assert killed_ns - kept[-1]["time"] <= MOST_LOST_NS
    assert first.rows("samples")

    second = record(directory=first.directory)
    sealing = second.wait_until(lambda: sealing_children(second.process.pid), every_s=0.005)
    orphans = [pid for pid, _ in children(second.process.pid)]
    kill_9(second)
    wait_until_ended([*sealing, *orphans])

    # Beside other tests more tasks wait than are kept, which is a warning of its own.
    third = record("--for", "3s", "--waits", "0s", directory=first.directory)
    code, facts, said = third.wait_for_end()
    assert (code, said) == (0, "")
    assert unfinished(first.directory) == []
    store = Store.open(first.directory)
    assert [gap for gap in store.gaps(killed_ns, killed_ns + 1) if "killed" in gap.cause]
    rows = store.rows("cores", 0, 1 << 62).to_pylist()
    assert rows[: len(kept)] == kept
    assert rows[-1]["time"] > killed_ns
    assert facts["segments"] >= 2
    assert leaks() == []


def test_a_stopped_recorder_keeps_samples_and_tells_what_it_missed(record, busy, leaks):
    spinner = busy(SPIN)
    recorder = record()
    recorder.wait_for_rows("cores", 4)
    recorder.process.send_signal(signal.SIGSTOP)
    stopped_ns = time.time_ns()
    time.sleep(STOPPED_S)
    resumed_ns = time.time_ns()
    recorder.process.send_signal(signal.SIGCONT)
    recorder.wait_until(
        lambda: [row for row in recorder.rows("cores") if row["time"] > resumed_ns + 2 * NS_PER_S],
        60,
    )
    code, _, _ = recorder.stop()
    spinner.kill()
    spinner.wait()
    assert code == 0
    store = Store.open(recorder.directory)
    gaps = [row for row in store.rows("gaps", 0, 1 << 62).to_pylist() if row["end"] > stopped_ns]
    late = {
        row["table"]
        for row in gaps
        if "the recorder was not run for" in row["cause"]
        and row["end"] - row["time"] > 10 * NS_PER_S
    }
    assert late >= {
        "cores",
        "softirqs",
        "softirq_delay",
        "runqueue",
        "softnet",
        "pressure",
        "memory",
    }
    seconds = Counter(
        (row["time"] - stopped_ns) // NS_PER_S
        for row in store.rows("samples", 0, 1 << 62).to_pylist()
        if row["comm"] == "spinner-15" and stopped_ns < row["time"] < resumed_ns
    )
    has_gap = any(row["table"] == "samples" and "ring full" in row["cause"] for row in gaps)
    assert has_gap or all(seconds[second] for second in range(STOPPED_S)), (
        f"seconds with samples: {sorted(seconds)}"
    )
    assert_rows_cover_all_time(store.rows("cores", 0, 1 << 62, cpus=[0]).to_pylist())
    assert leaks() == []


def assert_rows_cover_all_time(rows: list[dict[str, int]]) -> None:
    assert sum(row["elapsed_ns"] for row in rows) == pytest.approx(
        rows[-1]["time"] - rows[0]["time"] + rows[0]["elapsed_ns"], rel=1e-6
    )
    longest = max(rows, key=lambda row: row["elapsed_ns"])
    assert longest["elapsed_ns"] > (STOPPED_S - 1) * NS_PER_S
    modes_ns = sum(
        value for name, value in longest.items() if name.endswith("_ns") and name != "elapsed_ns"
    )
    assert modes_ns == pytest.approx(longest["elapsed_ns"], rel=0.1), (
        "shares of the long row are right"
    )
