"""A full disk: the oldest segments go, then the recorder pauses with a gap and goes on when there
is room; it never ends.
"""

import contextlib
import itertools
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.integration import private_view
from tests.integration.in_process import recorder_of, run_until_done

from necroscope.model.units import NS_PER_S
from necroscope.recorder.disk import Disk
from necroscope.recorder.memory import MemorySegment
from necroscope.recorder.retention import RetentionLimits
from necroscope.recorder.sink import RowBatch
from necroscope.segment.journal import SegmentHeader
from necroscope.segment.recording import Identity, make_recording, segment_start_ns
from necroscope.store.query import Store

pytestmark = [pytest.mark.kernel, pytest.mark.root]
START_NS = 1_800_000_000 * NS_PER_S
SPIN = "import itertools\nwhile True: sum(itertools.islice(itertools.count(), 1000))"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "small"
    path.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2M", "none", path], check=True)
    yield path
    subprocess.run(["umount", "--lazy", path], check=True)


class Ballast:
    """Takes every byte that gets free, until it is let go."""

    def __init__(self, disk: Path) -> None:
        self._path = disk / "ballast"
        self._file = self._path.open("wb", buffering=0)
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._fill)
        self._thread.start()

    def let_go(self) -> None:
        self._done.set()
        self._thread.join()
        self._file.close()
        self._path.unlink(missing_ok=True)

    def _fill(self) -> None:
        while not self._done.wait(0.02):
            with contextlib.suppress(OSError):
                while self._file.write(bytes(4096)):
                    pass


@pytest.fixture
def fill(small_disk: Path) -> Iterator[Callable[[], Ballast]]:
    started: list[Ballast] = []

    def start() -> Ballast:
        started.append(Ballast(small_disk))
        return started[-1]

    yield start
    for ballast in started:
        ballast.let_go()


def sealed(directory: Path) -> set[str]:
    return {path.name for path in directory.iterdir() if path.name.endswith("Z")}


def newest_start_ns(directory: Path) -> int:
    return segment_start_ns(max(path.name for path in directory.iterdir() if path.is_dir()))


def knows_all_stacks(directory: Path) -> bool:
    """Of the newest segment; -1 is a stack that was lost."""
    stacks = (
        Store.open(directory)
        .samples(newest_start_ns(directory), 1 << 62)
        .samples.column("stack")
        .to_pylist()
    )
    return len(stacks) > 97 and min(stacks) >= 0


def test_a_full_disk_costs_the_oldest_segments_then_a_pause(small_disk, fill, leaks, busy, record):
    directory = small_disk / "recording"
    for _ in range(2):
        assert record("--for", "1s", directory=directory).wait_for_end()[0] == 0
    old = sealed(directory)
    spinner = busy(SPIN)
    recorder = record("--segment", "5s", directory=directory)
    recorder.wait_until(lambda: any(path.name.endswith(".live") for path in directory.iterdir()))
    before = recorder.wait_for_rows("cores", 8)
    ballast = fill()
    recorder.wait_until(lambda: not sealed(directory) & old)
    # Journals that wait to be sealed go as well. Then nothing is left to drop, and new segments
    # cannot even be opened.
    recorder.wait_until(lambda: "recording pauses" in recorder.said(), 60)
    time.sleep(6)  # longer than a segment
    ballast.let_go()
    gaps = recorder.wait_for_rows("gaps")
    gap_end = gaps[-1]["end"]
    recorder.wait_until(
        lambda: newest_start_ns(directory) > gap_end and knows_all_stacks(directory)
    )
    code, facts, said = recorder.stop()
    spinner.kill()
    spinner.wait()
    assert code == 0
    assert "recording pauses: cannot write" in said
    assert "No space left on device" in said
    assert "recording goes on" in said
    store = Store.open(directory)
    assert facts["gaps"] == store.rows("gaps", 0, 1 << 62).num_rows
    rows = store.rows("cores", 0, 1 << 62, cpus=[0]).to_pylist()
    assert rows[0]["time"] >= before[0]["time"] - NS_PER_S
    assert_every_missing_second_is_in_a_gap(
        [row["time"] for row in rows], store.rows("gaps", 0, 1 << 62).to_pylist()
    )
    assert leaks() == []


def assert_every_missing_second_is_in_a_gap(times: list[int], gaps: list[dict]) -> None:
    assert gaps
    for earlier, later in itertools.pairwise(times):
        if later - earlier > 2 * NS_PER_S:
            assert any(
                gap["table"] == "*"
                and gap["time"] <= earlier + NS_PER_S
                and gap["end"] >= later - 2 * NS_PER_S
                for gap in gaps
            ), (earlier, later, gaps)


def test_a_recorder_ended_on_a_full_disk_ends_well(small_disk, fill, record):
    recorder = record(directory=small_disk / "recording")
    recorder.wait_for_rows("cores", 4)
    fill()
    recorder.wait_until(lambda: "recording pauses" in recorder.said())
    code, _, said = recorder.stop()
    assert code == 0
    assert "Traceback" not in said
    assert len(recorder.rows("cores")) >= 4


def make_disk(directory: Path) -> Disk:
    make_recording(directory, Identity("node", "boot", "test"))

    def header(segment: str, start_ns: int) -> SegmentHeader:
        return SegmentHeader(segment, "node", "boot", start_ns, 2)

    return Disk(directory, header, RetentionLimits(1 << 30, 1 << 60, 0), 0.0, START_NS)


def core_row(second: int) -> tuple[int, ...]:
    return (START_NS + second * NS_PER_S, 0, NS_PER_S, *([0] * 9))


def test_rows_that_cannot_be_written_cost_a_gap_not_the_recorder(tmp_path):
    disk = make_disk(tmp_path / "recording")
    disk.start_segment(START_NS)
    for second, table in ((1, "cores"), (2, "no such table"), (3, "cores"), (4, "cores")):
        disk.write(RowBatch({table: [core_row(second)]}), 0, START_NS + second * NS_PER_S)
    disk.close()
    store = Store.open(tmp_path / "recording")
    assert [
        (row["time"] - START_NS) // NS_PER_S for row in store.rows("cores", 0, 1 << 62).to_pylist()
    ] == [1, 3, 4]
    (gap,) = store.rows("gaps", 0, 1 << 62).to_pylist()
    assert "internal error" in gap["cause"]
    assert (gap["time"], gap["end"]) == (START_NS + NS_PER_S, START_NS + 2 * NS_PER_S)
    assert disk.take_loss()


class LossyMemory(MemorySegment):
    """A sink that lost a batch once, as a disk that was full."""

    def __init__(self) -> None:
        super().__init__(600 * NS_PER_S)
        self.starts_ns: list[int] = []
        self.has_lost = False

    def start_segment(self, start_ns: int) -> None:
        self.starts_ns.append(start_ns)
        super().start_segment(start_ns)

    def take_loss(self) -> bool:
        has_lost, self.has_lost = self.has_lost, False
        return has_lost


def test_a_loss_begins_a_new_segment_whose_stacks_are_whole():
    memory = LossyMemory()

    def lose(ticks: int) -> bool:
        memory.has_lost = True
        return ticks > 0

    with recorder_of(Path("/"), memory) as (recorder, _):
        run_until_done(
            recorder, [lose, lambda _: len(memory.starts_ns) == 2, lambda ticks: ticks > 10]
        )
    assert len(memory.starts_ns) == 2


def test_a_journal_that_cannot_be_sealed_counts_into_the_ring_and_can_be_dropped(
    tmp_path, monkeypatch
):
    monkeypatch.setattr("necroscope.recorder.seal_queue.sys.executable", "/bin/false")
    disk = make_disk(tmp_path / "recording")
    for second in (0, 10, 20):
        disk.start_segment(START_NS + second * NS_PER_S)
        disk.write(
            RowBatch({"cores": [core_row(second + 1)]}), 0, START_NS + (second + 1) * NS_PER_S
        )
    disk.close()
    assert disk.segments == 3
    assert disk.size_bytes == sum(
        file.stat().st_size for file in (tmp_path / "recording").glob("*.live/*")
    )
    disk._drop(missing_bytes=1)
    assert len(list((tmp_path / "recording").glob("*.live"))) == 2, "the oldest went"


def test_warnings_that_nobody_reads_do_not_end_the_recording(record):
    def preexec() -> None:
        private_view.own_mounts()
        private_view.mount("tmpfs", Path("/proc/pressure"))
        reader, writer = os.pipe()
        os.close(reader)
        os.dup2(writer, 2)

    code, facts, _ = record("--for", "3s", preexec=preexec).wait_for_end()
    assert (code, facts["segments"]) == (0, 1)
    assert facts["gaps"] > 0, "there was something to warn of"
