"""`perf script` text as perf writes it, and as it comes with odd names, other fields and faults."""

import gzip
from collections import Counter
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.read_capture import Read, read_capture

from necroscope.errors import CorruptData, UsageError
from necroscope.interchange.capture import Capture
from necroscope.interchange.perf_data.reader import open_perf_data
from necroscope.interchange.perf_script import open_perf_script, parse_header
from necroscope.interchange.script_frames import parse_frame
from necroscope.interchange.symbol_search import SymbolSearch

DATA = Path(__file__).parents[2] / "data" / "interchange"


def read(tmp_path: Path, text: str | bytes, *, keeps_idle: bool = True) -> Read:
    path = tmp_path / "text.stacks"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return read_capture(open_perf_script(path), keeps_idle=keeps_idle)


def test_text_and_file_of_one_capture_agree(tmp_path: Path) -> None:
    text = open_perf_script(DATA / "file.script.txt")
    file = open_perf_data(
        DATA / "file.data",
        SymbolSearch(DATA / "kernel_symbols.txt", build_id_cache=None, root=tmp_path),
    )

    def keys(capture: Capture) -> Counter[tuple[int, int, str | None]]:
        found = read_capture(capture)
        return Counter(
            (time // 1000, cpu, comm)
            for time, cpu, comm in zip(found.time_ns, found.cpu, found.comm, strict=True)
        )

    assert keys(text) == keys(file)
    assert (text.facts.host, text.facts.kernel_release, text.facts.cpus) == (
        "vm",
        "6.18.44-fc-v445",
        2,
    )
    assert text.facts.event_names == ["cpu-clock"]


def test_gzipped_text_is_read(tmp_path: Path) -> None:
    packed = tmp_path / "capture.stacks.gz"
    packed.write_bytes(gzip.compress((DATA / "file.script.txt").read_bytes()))
    assert (
        read_capture(open_perf_script(packed)).stacks
        == read_capture(open_perf_script(DATA / "file.script.txt")).stacks
    )


@pytest.mark.parametrize(
    ("line", "comm", "pid", "tid", "cpu", "time_ns", "event"),
    [
        (
            "java  123 [004] 12.345678:     250187 cpu-clock: ",
            "java",
            123,
            123,
            4,
            12_345_678_000,
            "cpu-clock",
        ),
        (
            "java  123/456 [004] 12.345678: cycles:ppp: ",
            "java",
            123,
            456,
            4,
            12_345_678_000,
            "cycles:ppp",
        ),
        ("java 123 12.345678901: ", "java", 123, 123, -1, 12_345_678_901, ""),
        (
            "   kworker/0:1-events    77 [000] 1.000000: 1 cycles:",
            "kworker/0:1-events",
            77,
            77,
            0,
            10**9,
            "cycles",
        ),
        ("Web Content 2 9 [001] 1.000000: 1 cycles:", "Web Content 2", 9, 9, 1, 10**9, "cycles"),
        (
            "a 1 2.500000: b  9 [001] 1.000000: 1 cycles:",
            "a 1 2.500000: b",
            9,
            9,
            1,
            10**9,
            "cycles",
        ),
        (
            "node18 5 [001] 1.000000: 1 sched:sched_switch: prev_comm=x 1 [000] 2.000000: 1 y:",
            "node18",
            5,
            5,
            1,
            10**9,
            "sched:sched_switch",
        ),
        (" 123/456 [004] 12.345678: cycles:", "", 123, 456, 4, 12_345_678_000, "cycles"),
        ("java [004] 12.345678: cycles:", "java", -1, -1, 4, 12_345_678_000, "cycles"),
        ("java 123 cycles:", "java", 123, 123, -1, -1, "cycles"),
        (
            "swapper     0 [000] d.h.. 12.345678: cycles:",
            "swapper",
            0,
            0,
            0,
            12_345_678_000,
            "cycles",
        ),
        (":-1    -1 [000] 12.345678: cycles:", ":-1", -1, -1, 0, 12_345_678_000, "cycles"),
    ],
)
def test_fields_of_a_sample(
    line: str, comm: str, pid: int, tid: int, cpu: int, time_ns: int, event: str
) -> None:
    found = parse_header(line.encode())
    assert found is not None
    assert (
        found.comm.decode(),
        found.pid,
        found.tid,
        found.cpu,
        found.time_ns,
        found.event.decode(),
    ) == (*(comm, pid, tid, cpu, time_ns, event),)


@pytest.mark.parametrize(
    ("line", "frame"),
    [
        ("\tffffffff8168a884 do_idle+0x44 ([kernel.kallsyms])", ("do_idle", "[kernel]", "kernel")),
        ("\tffffffffc0001000 ena_io_poll+0x1 ([ena])", ("ena_io_poll", "[ena]", "kernel")),
        (
            "\tffffffffc0001000 ext4_x (/lib/modules/6.1/kernel/fs/ext4/ext4-x.ko.xz)",
            ("ext4_x", "[ext4_x]", "kernel"),
        ),
        (
            "\t          9766c _int_malloc+0x30c (/usr/lib/libc.so.6)",
            ("_int_malloc", "/usr/lib/libc.so.6", "user"),
        ),
        (
            "\t 1 std::map<int, (a)>::at(int const&) const+0x1 (/opt/a b.so)",
            ("std::map<int, (a)>::at(int const&) const", "/opt/a b.so", "user"),
        ),
        ("\t 1 LFoo;run (/tmp/perf-12.map)", ("LFoo;run", "[jit]", "jit")),
        ("\t 0 [unknown] ([unknown])", (None, "[unknown]", "user")),
        ("\t 7f00 [unknown] (/usr/bin/app (deleted))", (None, "/usr/bin/app (deleted)", "user")),
        ("\tread+0x5 (/usr/lib/libc.so.6)", ("read", "/usr/lib/libc.so.6", "user")),
        ("\t 7f00 read", ("read", "[unknown]", "user")),
        ("\t 7f00 add (/a)", ("add", "/a", "user")),
        ("\t 7f00 clock_gettime+0x1 ([vdso])", ("clock_gettime", "[vdso]", "user")),
    ],
)
def test_frame_lines(line: str, frame: tuple[str | None, str, str]) -> None:
    found = parse_frame(line.encode())
    assert (found.function, found.module, found.kind) == frame


def test_samples_without_a_stack_follow_each_other(tmp_path: Path) -> None:
    text = (
        "a 1 [000] 1.000000: 1 cycles:  7f00 read+0x1 (/libc)\na 1 [000] 2.000000: 1 cycles:  7f01"
        " write+0x1 (/libc)\n"
    )
    found = read(tmp_path, text)
    assert found.functions == [["read"], ["write"]]


def test_frames_without_addresses_are_told_apart(tmp_path: Path) -> None:
    text = "a 1 [000] 1.000000: 1 cycles: \n\tfeed+0x1 (/x)\n\tface (/x)\n\n"
    found = read(tmp_path, text)
    assert found.functions == [["feed", "face"]]


def test_interrupt_on_an_idle_core_is_kept(tmp_path: Path) -> None:
    frames = "".join(
        f"\tffffffff8100000{i} {name}+0x1 ([kernel.kallsyms])\n"
        for i, name in enumerate(("net_rx_action", "cpuidle_enter"))
    )
    text = f"swapper 0 [000] 1.000000: 1 cycles: \n{frames}\n"
    found = read(tmp_path, text, keeps_idle=False)
    assert found.functions == [["net_rx_action", "cpuidle_enter"]]


def test_last_sample_out_of_order_is_put_in_its_place(tmp_path: Path) -> None:
    text = "".join(f"a 1 [000] {time}.000000: 1 cycles: \n\t 1 f (/x)\n\n" for time in (5, 6, 7, 2))
    found = read(tmp_path, text)
    assert found.time_ns == [2 * 10**9, 5 * 10**9, 6 * 10**9, 7 * 10**9]


def test_stack_ten_thousand_deep_is_read(tmp_path: Path) -> None:
    frames = "".join(f"\t {depth:x} f{depth}+0x1 (/x)\n" for depth in range(1, 10_001))
    found = read(tmp_path, f"a 1 [000] 1.000000: 1 cycles: \n{frames}\n")
    assert len(found.functions[0]) == 10_000


def test_endless_line_is_an_error_with_its_byte_and_keeps_what_came_before(tmp_path: Path) -> None:
    sample = "a 1 [000] 1.000000: 1 cycles: \n\t 1 f (/x)\n\n"
    found = read(tmp_path, sample * 60_000 + "x" * (64 << 20))
    assert len(found) >= 50_000
    assert any(
        "byte" in note and "what came before was read" in note for note in found.capture.notes
    )


def test_one_endless_line_alone_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a line of more than"):
        read(tmp_path, "x" * (4 << 20))


def test_binary_file_given_as_text_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"byte .*: a zero byte"):
        read(tmp_path, (DATA / "file.data").read_bytes())


def test_other_text_is_refused_with_its_beginning(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="hello"):
        read(tmp_path, "hello world\n")


def test_broken_gzip_keeps_what_came_before(tmp_path: Path) -> None:
    sample = "".join(
        f"a 1 [000] {time}.000000: 1 cycles: \n\t {time * 7919:x} f{time} (/x)\n\n"
        for time in range(1, 60_000)
    )
    packed = gzip.compress(sample.encode(), 1)
    path = tmp_path / "cut.stacks.gz"
    path.write_bytes(packed[: len(packed) - 1000])
    capture = open_perf_script(path)
    assert len(read_capture(capture)) > 30_000
    assert any("cut at byte" in note for note in capture.notes)


def test_names_come_out_clean(tmp_path: Path) -> None:
    found = read(
        tmp_path, 'a\x1b[1m<b>;" 1 [000] 1.000000: 1 cycles: \n\t 1 f\x1b;<script> (/x\x07)\n\n'
    )
    assert found.comm == ['a\\x1b[1m<b>;"']
    assert found.functions == [["f\\x1b;<script>"]]


@settings(
    max_examples=80, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(text=st.text(alphabet="ab 1:[]().\n\t+x0;/#-\xe9", max_size=300))
def test_any_text_gives_a_capture_or_a_typed_error(text: str, tmp_path: Path) -> None:
    with suppress(UsageError, CorruptData):
        read(tmp_path, "a 1 [000] 1.000000: 1 cycles: \n" + text)
