"""Broken and hostile perf.data: typed errors, notes and bounded work, never anything else."""

import struct
from contextlib import suppress
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.read_capture import Read, read_capture

from necroscope.errors import CorruptData, UsageError
from necroscope.interchange.capture import ImportPlan
from necroscope.interchange.import_profile import LIMITS, ImportProfile
from necroscope.interchange.importer import Options, import_files
from necroscope.interchange.perf_data.reader import open_perf_data
from necroscope.interchange.symbol_search import SymbolSearch
from necroscope.perf_abi.event_attr import CONTEXT_KERNEL, CONTEXT_USER, EventAttr

DATA = Path(__file__).parents[3] / "data" / "interchange"
CAPTURES = [
    "file.data",
    "pipe.data",
    "compressed.data",
    "two_events.data",
    "dwarf.data",
    "group.data",
    "many_fields.data",
]
IP_TID_TIME_CHAIN = 0b100111
SAMPLE_ID_ALL = 1 << 18


def search(folder: Path) -> SymbolSearch:
    return SymbolSearch(build_id_cache=None, root=folder / "nothing")


def read_all(path: Path) -> tuple[Read, int]:
    found = read_capture(open_perf_data(path, search(path.parent)))
    return found, len(found)


def record(kind: int, body: bytes, misc: int = 0) -> bytes:
    return struct.pack("<IHH", kind, misc, 8 + len(body)) + body


def pipe(*records: bytes, sample_type: int = IP_TID_TIME_CHAIN) -> bytes:
    """A file in pipe mode with one event."""
    attr = EventAttr(1, 0, sample_type, SAMPLE_ID_ALL).pack()
    return (
        b"PERFILE2"
        + struct.pack("<Q", 16)
        + record(64, attr + struct.pack("<Q", 7))
        + b"".join(records)
    )


def sample(time: int, *addresses: int, pid: int = 5, count: int | None = None) -> bytes:
    chain = struct.pack(
        f"<Q{len(addresses)}Q", len(addresses) if count is None else count, *addresses
    )
    return record(9, struct.pack("<QIIQ", 0, pid, pid, time) + chain, misc=2)


def trailer(pid: int, time: int) -> bytes:
    return struct.pack("<IIQ", pid, pid, time)


def comm(name: bytes, time: int, pid: int = 5, misc: int = 0) -> bytes:
    return record(
        3, struct.pack("<II", pid, pid) + name.ljust(16, b"\0") + trailer(pid, time), misc
    )


def mmap(start: int, length: int, path: bytes, time: int, pid: int = 5) -> bytes:
    return record(
        1,
        struct.pack("<IIQQQ", pid, pid, start, length, 0)
        + path.ljust(32, b"\0")
        + trailer(pid, time),
    )


def written(tmp_path: Path, content: bytes) -> Path:
    path = tmp_path / "made.data"
    path.write_bytes(content)
    return path


@settings(
    max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(
    name=st.sampled_from(CAPTURES),
    flips=st.lists(st.tuples(st.floats(0, 1), st.integers(1, 255)), min_size=1, max_size=8),
)
def test_flipped_bytes_give_a_typed_error_or_a_capture(
    name: str, flips: list[tuple[float, int]], tmp_path: Path
) -> None:
    content = bytearray((DATA / name).read_bytes())
    for place, change in flips:
        content[int(place * (len(content) - 1))] ^= change
    with suppress(CorruptData, UsageError):
        read_all(written(tmp_path, bytes(content)))


@settings(
    max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(name=st.sampled_from(CAPTURES), kept=st.floats(0, 1))
def test_cut_files_give_a_typed_error_or_a_capture(name: str, kept: float, tmp_path: Path) -> None:
    content = (DATA / name).read_bytes()
    with suppress(CorruptData, UsageError):
        _, samples = read_all(written(tmp_path, content[: int(kept * len(content))]))
        assert samples <= len(content) // 40


@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(body=st.binary(max_size=400))
def test_random_records_give_a_typed_error_or_a_capture(body: bytes, tmp_path: Path) -> None:
    for sample_type in (IP_TID_TIME_CHAIN, (1 << 25) - 1):
        with suppress(CorruptData, UsageError):
            read_all(
                written(
                    tmp_path,
                    pipe(record(9, body[: len(body) // 8 * 8]), body, sample_type=sample_type),
                )
            )


def test_fault_is_reported_with_its_byte_and_what_came_before_is_kept(tmp_path: Path) -> None:
    good = pipe(sample(1, CONTEXT_KERNEL, 1 << 63))
    found, samples = read_all(written(tmp_path, good + struct.pack("<IHH", 9, 0, 0) + bytes(64)))
    assert samples == 1
    assert any(f"cut at byte {len(good)}" in note for note in found.capture.notes)


def test_chain_that_claims_more_than_its_record_is_left_out_and_counted(tmp_path: Path) -> None:
    found, samples = read_all(
        written(tmp_path, pipe(sample(1, 5, count=1 << 60), sample(2, CONTEXT_USER, 5)))
    )
    assert samples == 1
    assert any(note.startswith("1 samples do not fit") for note in found.capture.notes)


def test_chain_that_reaches_into_the_next_record_is_left_out(tmp_path: Path) -> None:
    found, samples = read_all(
        written(tmp_path, pipe(sample(1, CONTEXT_USER, 5, count=3), sample(2, CONTEXT_USER, 5)))
    )
    assert samples == 1
    assert any(note.startswith("1 samples do not fit") for note in found.capture.notes)


def test_return_address_behind_a_function_belongs_to_the_call_in_it(tmp_path: Path) -> None:
    """A call that never returns is a function's last instruction: the return address is the next
    function's first byte.
    """
    start = 0xFFFFFFFF81000000
    symbols = tmp_path / "kallsyms"
    symbols.write_text(
        "".join(
            f"{start + 256 * i:x} T {name}\n"
            for i, name in enumerate(("inner", "caller", "unrelated", "end"))
        )
    )
    path = written(tmp_path, pipe(sample(1, CONTEXT_KERNEL, start, start + 512)))
    capture = open_perf_data(
        path, SymbolSearch(symbols, build_id_cache=None, root=tmp_path / "nothing")
    )
    assert read_capture(capture).functions == [["inner", "caller"]]


def test_trace_data_that_claims_more_than_the_file_ends_it(tmp_path: Path) -> None:
    huge = record(71, struct.pack("<QQQIIII", 1 << 62, 0, 0, 0, 0, 0, 0))
    found, samples = read_all(
        written(tmp_path, pipe(sample(1, CONTEXT_USER, 5), huge, sample(2, CONTEXT_USER, 5)))
    )
    assert samples == 1
    assert any("hardware trace" in note for note in found.capture.notes)


def test_trace_data_is_skipped_and_said_so(tmp_path: Path) -> None:
    trace = record(71, struct.pack("<QQQIIII", 64, 0, 0, 0, 0, 0, 0)) + b"\xff" * 64
    found, samples = read_all(
        written(tmp_path, pipe(sample(1, CONTEXT_USER, 5), trace, sample(2, CONTEXT_USER, 5)))
    )
    assert samples == 2
    assert "64 bytes of hardware trace (AUX) were left out" in found.capture.notes


def test_name_is_that_of_the_moment_even_when_records_come_out_of_order(tmp_path: Path) -> None:
    content = pipe(
        sample(30, CONTEXT_USER, 5),
        comm(b"late", 20),
        sample(10, CONTEXT_USER, 5),
        comm(b"early", 0),
    )
    found, _ = read_all(written(tmp_path, content))
    assert found.time_ns == [10, 30]
    assert found.comm == ["early", "late"]


def test_records_of_a_later_round_that_are_older_still_count(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """perf reads one core after the other: a round may hold records from before the end of the
    round before it.
    """
    monkeypatch.setattr("necroscope.interchange.perf_data.stream._PIECE_BYTES", 200)
    monkeypatch.setattr("necroscope.interchange.perf_data.reader._BATCH_BYTES", 0)
    rounds = [
        comm(b"at 50", 50 + at)
        + sample(60 + at, CONTEXT_USER, 5)
        + sample(100 + at, CONTEXT_USER, 5)
        + record(68, b"")
        for at in range(0, 400, 20)
    ]
    found, samples = read_all(written(tmp_path, pipe(comm(b"first", 0), *rounds)))
    assert samples == 40
    assert found.time_ns == sorted(found.time_ns)
    assert found.batches > 5


def test_mapping_over_another_holds_from_its_moment_on(tmp_path: Path) -> None:
    content = pipe(
        mmap(0x1000, 0x1000, b"/old", 0),
        sample(10, CONTEXT_USER, 0x1800),
        mmap(0x1000, 0x1000, b"/new", 20),
        sample(30, CONTEXT_USER, 0x1800),
    )
    found, _ = read_all(written(tmp_path, content))
    assert [stack[0].module for stack in found.stacks] == ["/old", "/new"]


def test_exec_forgets_the_mappings_and_fork_keeps_them(tmp_path: Path) -> None:
    fork = record(7, struct.pack("<IIIIQ", 6, 5, 6, 5, 10) + trailer(6, 10))
    content = pipe(
        mmap(0x1000, 0x1000, b"/parent", 0),
        fork,
        sample(20, CONTEXT_USER, 0x1800, pid=6),
        comm(b"child", 30, pid=6, misc=1 << 13),
        sample(40, CONTEXT_USER, 0x1800, pid=6),
    )
    found, _ = read_all(written(tmp_path, content))
    assert [stack[0].module for stack in found.stacks] == ["/parent", "[unknown]"]


def test_perf_maps_name_code_without_a_file(tmp_path: Path) -> None:
    (tmp_path / "perf-5.map").write_text("1000 100 Lcom/example;run\n")
    path = written(
        tmp_path, pipe(mmap(0x1000, 0x1000, b"//anon", 0), sample(10, CONTEXT_USER, 0x1010))
    )
    capture = open_perf_data(
        path, SymbolSearch(build_id_cache=None, root=tmp_path / "nothing", perf_maps=tmp_path)
    )
    (frames,) = read_capture(capture).stacks
    assert [(frame.function, frame.module, frame.kind) for frame in frames] == [
        ("Lcom/example;run", "[jit]", "jit")
    ]


def test_deepest_stack_a_record_can_hold_is_read(tmp_path: Path) -> None:
    addresses = [CONTEXT_KERNEL, *((1 << 63) + 16 * depth for depth in range(8000))]
    found, samples = read_all(written(tmp_path, pipe(sample(1, *addresses))))
    assert samples == 1
    assert len(found.stacks[0]) == 8000


def test_lost_samples_are_reported_with_their_time(tmp_path: Path) -> None:
    content = pipe(sample(5, CONTEXT_USER, 5), record(2, struct.pack("<QQ", 7, 42) + trailer(0, 9)))
    found, _ = read_all(written(tmp_path, content))
    assert [(lost.time_ns, lost.samples) for lost in found.capture.lost] == [(9, 42)]


def test_names_from_the_file_cannot_steer_a_terminal(tmp_path: Path) -> None:
    content = pipe(
        comm(b"\x1b[31m<script>", 0),
        mmap(0x1000, 0x1000, b"/a\n;b", 0),
        sample(1, CONTEXT_USER, 0x1800),
    )
    found, _ = read_all(written(tmp_path, content))
    assert found.comm == ["\\x1b[31m<script>"]
    assert "/a\\x0a;b" in [frame.module for frame in found.frames]


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    """Four times the samples of the same stacks, with rounds: what is held is a few pieces of
    it.
    """
    one = b"".join(
        sample(1000 + i, CONTEXT_KERNEL, *range(1 << 63, (1 << 63) + 30)) for i in range(3000)
    ) + record(68, b"")
    peaks = []
    for times in (8, 32):
        capture, profile = (
            open_perf_data(written(tmp_path, pipe() + one * times), search(tmp_path)),
            ImportProfile(),
        )
        held = [profile.core.view.used_bytes for _ in capture.batches(ImportPlan(profile))]
        assert profile.core.view.samples == 3000 * times
        peaks.append(max(held))
    assert peaks[1] < 2 * peaks[0]


def test_records_without_order_are_read_and_samples_stay_in_the_order_of_time(
    tmp_path: Path,
) -> None:
    """Shuffled, and each twice: no record is lost, and none is taken for another."""
    records = [sample(100 + i, CONTEXT_USER, 5, pid=i % 7) for i in range(500)] + [
        comm(b"n", 50 + i, pid=i % 7) for i in range(99)
    ]
    Random(7).shuffle(records)
    found, samples = read_all(written(tmp_path, pipe(*records, *records)))
    assert samples == 1000
    assert found.time_ns == sorted(found.time_ns)


def test_records_of_unknown_types_are_passed_over(tmp_path: Path) -> None:
    odd = [
        record(kind, bytes(8 * (kind % 5)))
        for kind in (*range(20, 64), *range(84, 200), 0xFFFFFFFF)
    ]
    _, samples = read_all(
        written(tmp_path, pipe(sample(1, CONTEXT_USER, 5), *odd, sample(2, CONTEXT_USER, 5)))
    )
    assert samples == 2


def test_times_that_jump_about_make_no_endless_work(tmp_path: Path) -> None:
    """One sample per five minutes of all that 63 bits can say: each gets its segment, up to a
    bound, and none is lost.
    """
    times = [1 << shift for shift in range(30, 63)] + [(1 << 63) - 1 - at for at in range(5)]
    path = written(tmp_path, pipe(*(sample(time, CONTEXT_USER, 5) for time in times)))
    report = import_files([path], tmp_path / "out", Options(search=search(tmp_path)))
    assert report.rows["samples"] == len(times)


def test_samples_of_more_tasks_than_can_be_held_are_counted(tmp_path: Path) -> None:
    limits = LIMITS._replace(limit_bytes=1 << 20, tenant_bytes=1 << 20)
    path = written(
        tmp_path, pipe(*(sample(at, CONTEXT_USER, 5, pid=at) for at in range(1, 60_000)))
    )
    capture, profile = open_perf_data(path, search(tmp_path)), ImportProfile(limits)
    samples = sum(len(batch) for batch in capture.batches(ImportPlan(profile)))
    assert profile.core.view.used_bytes <= 1 << 20
    assert any("than can be held" in note for note in capture.notes)
    assert 0 < samples < 60_000


@pytest.mark.parametrize(
    "content", [b"\0" * 7, struct.pack("<IHH", 9, 0, 12) + bytes(4), struct.pack("<IHH", 9, 0, 64)]
)
def test_no_record_starts_in_what_holds_none(content: bytes, tmp_path: Path) -> None:
    found, samples = read_all(written(tmp_path, pipe(sample(1, CONTEXT_USER, 5)) + content))
    assert samples == 1
    assert any("cut at byte" in note for note in found.capture.notes)


def test_compressed_records_that_would_fill_a_disk_end_with_a_note(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("necroscope.interchange.perf_data.stream._UNPACKED_FREE_BYTES", 1 << 20)
    bomb = pa.compress(record(90, bytes(60_000)) * 2000, codec="zstd", asbytes=True)
    pieces = [bomb[at : at + 60_000] for at in range(0, len(bomb), 60_000)]
    path = tmp_path / "bomb.data"
    path.write_bytes(pipe(*(record(81, piece) for piece in pieces)))
    assert len(bomb) < 100_000
    report = import_failure(path)
    assert "more than 256 times the file" in report


def import_failure(path: Path) -> str:
    capture = open_perf_data(path, search(path.parent))
    with suppress(CorruptData, UsageError):
        read_capture(capture)
    return " ".join(capture.notes)
