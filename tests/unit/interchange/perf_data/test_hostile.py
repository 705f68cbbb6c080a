"""Broken and hostile perf.data: typed errors, notes and bounded work, never anything else."""

import struct
import tracemalloc
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from necroscope.errors import CorruptData, UsageError
from necroscope.interchange.capture import Capture
from necroscope.interchange.perf_data.reader import open_perf_data
from necroscope.interchange.perf_data.stream import record_starts
from necroscope.interchange.symbol_search import SymbolSearch
from necroscope.perf_abi.event_attr import CONTEXT_KERNEL, CONTEXT_USER, EventAttr

DATA = Path(__file__).parents[3] / "data" / "interchange"
CAPTURES = ["file.data", "pipe.data", "compressed.data", "two_events.data", "dwarf.data", "group.data", "many_fields.data"]
IP_TID_TIME_CHAIN = 0b100111
SAMPLE_ID_ALL = 1 << 18


def search(folder: Path) -> SymbolSearch:
    return SymbolSearch(build_id_cache=None, root=folder / "nothing")


def read_all(path: Path) -> tuple[Capture, int]:
    capture = open_perf_data(path, search(path.parent))
    return capture, sum(len(batch) for batch in capture.batches())


def record(kind: int, body: bytes, misc: int = 0) -> bytes:
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def pipe(*records: bytes, sample_type: int = IP_TID_TIME_CHAIN) -> bytes:
    """A file in pipe mode with one event."""
    attr = EventAttr(1, 0, sample_type, SAMPLE_ID_ALL).pack()
    return b"PERFILE2" + struct.pack("<Q", 16) + record(64, attr + struct.pack("<Q", 7)) + b"".join(records)


def sample(time: int, *addresses: int, pid: int = 5, count: int | None = None) -> bytes:
    chain = struct.pack(f"<Q{len(addresses)}Q", len(addresses) if count is None else count, *addresses)
    return record(9, struct.pack("<QIIQ", 0, pid, pid, time) + chain, misc=2)


def trailer(pid: int, time: int) -> bytes:
    return struct.pack("<IIQ", pid, pid, time)


def comm(name: bytes, time: int, pid: int = 5, misc: int = 0) -> bytes:
    return record(3, struct.pack("<II", pid, pid) + name.ljust(16, b"\0") + trailer(pid, time), misc)


def mmap(start: int, length: int, path: bytes, time: int, pid: int = 5) -> bytes:
    return record(1, struct.pack("<IIQQQ", pid, pid, start, length, 0) + path.ljust(32, b"\0") + trailer(pid, time))


def written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "made.data"
    path.write_bytes(content)
    return path


@settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(CAPTURES), flips=st.lists(st.tuples(st.floats(0, 1), st.integers(1, 255)), min_size=1, max_size=8))
def test_flipped_bytes_give_a_typed_error_or_a_capture(name: str, flips: list[tuple[float, int]], tmp_path: Path) -> None:
    content = bytearray((DATA / name).read_bytes())
    for place, change in flips:
        content[int(place * (len(content) - 1))] ^= change
    with suppress(CorruptData, UsageError):
        read_all(written(tmp_path, bytes(content)))


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=st.sampled_from(CAPTURES), kept=st.floats(0, 1))
def test_cut_files_give_a_typed_error_or_a_capture(name: str, kept: float, tmp_path: Path) -> None:
    content = (DATA / name).read_bytes()
    with suppress(CorruptData, UsageError):
        _, samples = read_all(written(tmp_path, content[: int(kept * len(content))]))
        assert samples <= len(content) // 40


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(body=st.binary(max_size=400))
def test_random_records_give_a_typed_error_or_a_capture(body: bytes, tmp_path: Path) -> None:
    for sample_type in (IP_TID_TIME_CHAIN, (1 << 25) - 1):
        with suppress(CorruptData, UsageError):
            read_all(written(tmp_path, pipe(record(9, body[: len(body) // 8 * 8]), body, sample_type=sample_type)))


def test_fault_is_told_with_its_byte_and_what_came_before_is_kept(tmp_path: Path) -> None:
    good = pipe(sample(1, CONTEXT_KERNEL, 1 << 63))
    capture, samples = read_all(written(tmp_path, good + struct.pack("<IHH", 9, 0, 0) + bytes(64)))
    assert samples == 1
    assert any(f"cut at byte {len(good)}" in note for note in capture.notes)


def test_chain_that_claims_more_than_its_record_is_left_out_and_counted(tmp_path: Path) -> None:
    capture, samples = read_all(written(tmp_path, pipe(sample(1, 5, count=1 << 60), sample(2, CONTEXT_USER, 5))))
    assert samples == 1
    assert any(note.startswith("1 samples do not fit") for note in capture.notes)


def test_chain_that_reaches_into_the_next_record_is_left_out(tmp_path: Path) -> None:
    capture, samples = read_all(written(tmp_path, pipe(sample(1, CONTEXT_USER, 5, count=3), sample(2, CONTEXT_USER, 5))))
    assert samples == 1
    assert any(note.startswith("1 samples do not fit") for note in capture.notes)


def test_return_address_behind_a_function_belongs_to_the_call_in_it(tmp_path: Path) -> None:
    """A call that never returns is a function's last instruction: the return address is the next function's first byte."""
    start = 0xFFFFFFFF81000000
    symbols = tmp_path / "kallsyms"
    symbols.write_text(
        "".join(f"{start + 256 * i:x} T {name}\n" for i, name in enumerate(("inner", "caller", "unrelated", "end")))
    )
    path = written(tmp_path, pipe(sample(1, CONTEXT_KERNEL, start, start + 512)))
    capture = open_perf_data(path, SymbolSearch(symbols, build_id_cache=None, root=tmp_path / "nothing"))
    frames = capture.stacks.frames_of(int(next(iter(capture.batches())).stack[0]))
    assert [frame.function for frame in frames] == ["inner", "caller"]


def test_trace_data_that_claims_more_than_the_file_ends_it(tmp_path: Path) -> None:
    huge = record(71, struct.pack("<QQQIIII", 1 << 62, 0, 0, 0, 0, 0, 0))
    capture, samples = read_all(written(tmp_path, pipe(sample(1, CONTEXT_USER, 5), huge, sample(2, CONTEXT_USER, 5))))
    assert samples == 1
    assert any("hardware trace" in note for note in capture.notes)


def test_trace_data_is_skipped_and_said_so(tmp_path: Path) -> None:
    trace = record(71, struct.pack("<QQQIIII", 64, 0, 0, 0, 0, 0, 0)) + b"\xff" * 64
    capture, samples = read_all(written(tmp_path, pipe(sample(1, CONTEXT_USER, 5), trace, sample(2, CONTEXT_USER, 5))))
    assert samples == 2
    assert "64 bytes of hardware trace (AUX) were left out" in capture.notes


def test_name_is_that_of_the_moment_even_when_records_come_out_of_order(tmp_path: Path) -> None:
    content = pipe(sample(30, CONTEXT_USER, 5), comm(b"late", 20), sample(10, CONTEXT_USER, 5), comm(b"early", 0))
    capture, _ = read_all(written(tmp_path, content))
    batch = next(iter(capture.batches()))
    assert batch.time_ns.tolist() == [10, 30]
    assert [capture.comms.texts[number] for number in batch.comm.tolist()] == ["early", "late"]


def test_records_of_a_later_round_that_are_older_still_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """perf reads one core after the other: a round may hold records from before the end of the round before it."""
    monkeypatch.setattr("necroscope.interchange.perf_data.stream._PIECE_BYTES", 200)
    monkeypatch.setattr("necroscope.interchange.perf_data.reader._ROUND_BYTES", 0)
    monkeypatch.setattr("necroscope.interchange.perf_data.reader._BATCH_BYTES", 0)
    rounds = [
        comm(b"at 50", 50 + at) + sample(60 + at, CONTEXT_USER, 5) + sample(100 + at, CONTEXT_USER, 5) + record(68, b"")
        for at in range(0, 400, 20)
    ]
    capture, samples = read_all(written(tmp_path, pipe(comm(b"first", 0), *rounds)))
    times = [time for batch in capture.batches() for time in batch.time_ns.tolist()]
    assert samples == 40
    assert times == sorted(times)
    assert len(list(capture.batches())) > 5


def test_mapping_over_another_holds_from_its_moment_on(tmp_path: Path) -> None:
    content = pipe(
        mmap(0x1000, 0x1000, b"/old", 0),
        sample(10, CONTEXT_USER, 0x1800),
        mmap(0x1000, 0x1000, b"/new", 20),
        sample(30, CONTEXT_USER, 0x1800),
    )
    capture, _ = read_all(written(tmp_path, content))
    stacks = next(iter(capture.batches())).stack.tolist()
    assert [capture.stacks.frames_of(stack)[0].module for stack in stacks] == ["/old", "/new"]


def test_exec_forgets_the_mappings_and_fork_keeps_them(tmp_path: Path) -> None:
    fork = record(7, struct.pack("<IIIIQ", 6, 5, 6, 5, 10) + trailer(6, 10))
    content = pipe(
        mmap(0x1000, 0x1000, b"/parent", 0),
        fork,
        sample(20, CONTEXT_USER, 0x1800, pid=6),
        comm(b"child", 30, pid=6, misc=1 << 13),
        sample(40, CONTEXT_USER, 0x1800, pid=6),
    )
    capture, _ = read_all(written(tmp_path, content))
    stacks = next(iter(capture.batches())).stack.tolist()
    assert [capture.stacks.frames_of(stack)[0].module for stack in stacks] == ["/parent", "[unknown]"]


def test_perf_maps_name_code_without_a_file(tmp_path: Path) -> None:
    (tmp_path / "perf-5.map").write_text("1000 100 Lcom/example;run\n")
    path = written(tmp_path, pipe(mmap(0x1000, 0x1000, b"//anon", 0), sample(10, CONTEXT_USER, 0x1010)))
    capture = open_perf_data(path, SymbolSearch(build_id_cache=None, root=tmp_path / "nothing", perf_maps=tmp_path))
    frames = capture.stacks.frames_of(int(next(iter(capture.batches())).stack[0]))
    assert [(frame.function, frame.module, frame.kind) for frame in frames] == [("Lcom/example;run", "[jit]", "jit")]


def test_deepest_stack_a_record_can_hold_is_read(tmp_path: Path) -> None:
    addresses = [CONTEXT_KERNEL, *((1 << 63) + 16 * depth for depth in range(8000))]
    capture, samples = read_all(written(tmp_path, pipe(sample(1, *addresses))))
    assert samples == 1
    assert len(capture.stacks) == 8000


def test_lost_samples_are_told_with_their_time(tmp_path: Path) -> None:
    content = pipe(sample(5, CONTEXT_USER, 5), record(2, struct.pack("<QQ", 7, 42) + trailer(0, 9)))
    capture, _ = read_all(written(tmp_path, content))
    assert [(lost.time_ns, lost.samples) for lost in capture.lost] == [(9, 42)]


def test_names_from_the_file_cannot_steer_a_terminal(tmp_path: Path) -> None:
    content = pipe(comm(b"\x1b[31m<script>", 0), mmap(0x1000, 0x1000, b"/a\n;b", 0), sample(1, CONTEXT_USER, 0x1800))
    capture, _ = read_all(written(tmp_path, content))
    assert "\\x1b[31m<script>" in capture.comms.texts
    assert "/a\\x0a;b" in [frame.module for frame in capture.stacks.frames]


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """Sixteen times the samples of the same stacks, with rounds: what is held is a few pieces of it."""
    one = b"".join(sample(1000 + i, CONTEXT_KERNEL, *range(1 << 63, (1 << 63) + 30)) for i in range(3000)) + record(68, b"")
    peaks = []
    for times in (8, 32):
        path = written(tmp_path, pipe() + one * times)
        tracemalloc.start()
        assert read_all(path)[1] == 3000 * times
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < 2 * peaks[0]


@pytest.mark.parametrize("content", [b"", b"\0" * 7, struct.pack("<IHH", 9, 0, 12) + bytes(4), struct.pack("<IHH", 9, 0, 64)])
def test_no_record_starts_in_what_holds_none(content: bytes) -> None:
    starts, length = record_starts(content)
    assert (len(starts), length) == (0, 0)
