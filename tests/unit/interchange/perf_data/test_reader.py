"""Real perf.data files against what `perf script` says of them, and against what their makers asked for."""

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from necroscope.errors import CorruptData, UsageError
from necroscope.interchange.capture import Capture, SampleBatch
from necroscope.interchange.perf_data.reader import open_perf_data
from necroscope.interchange.symbol_search import SymbolSearch
from necroscope.interchange.unnamed import UnnamedCount

DATA = Path(__file__).parents[3] / "data" / "interchange"
CAPTURES = sorted(path.name for path in DATA.glob("*.data"))


def elsewhere(tmp_path: Path, **given: Path) -> SymbolSearch:
    """A search that finds nothing but what is given: another machine's."""
    return SymbolSearch(build_id_cache=None, root=tmp_path, **given)


def read(name: str, search: SymbolSearch, **window: int) -> tuple[Capture, list[SampleBatch]]:
    capture = open_perf_data(DATA / name, search, **window)
    return capture, list(capture.batches())


def joined(batches: list[SampleBatch], column: str) -> list[int]:
    return [value for batch in batches for value in getattr(batch, column).tolist()]


def comms(capture: Capture, batches: list[SampleBatch]) -> list[str]:
    return [capture.comms.texts[number] for number in joined(batches, "comm")]


def perf_script(name: str, fields: str) -> list[str]:
    if shutil.which("perf") is None:
        pytest.skip("perf is not installed")
    found = subprocess.run(
        ["perf", "script", "-f", "--ns", "-G", "-i", str(DATA / name), "-F", fields], capture_output=True, text=True, check=False
    )
    if found.returncode:
        pytest.skip(f"perf cannot read the file: {found.stderr[:100]}")
    return found.stdout.splitlines()


@pytest.mark.parametrize("name", [name for name in CAPTURES if name != "group.data"])
def test_tasks_are_those_of_perf_script(name: str, tmp_path: Path) -> None:
    """`group.data` is left out: perf makes a second sample of each group's other event."""
    capture, batches = read(name, elsewhere(tmp_path))
    lines = [re.fullmatch(r"\s*(.*?)\s+(-?\d+)/(-?\d+)\s*", line) for line in perf_script(name, "comm,pid,tid")]
    theirs = Counter((line[1], int(line[2]), int(line[3])) for line in lines if line)
    ours = zip(comms(capture, batches), joined(batches, "pid"), joined(batches, "tid"), strict=True)
    assert theirs
    assert Counter(ours) == theirs


@pytest.mark.parametrize(
    "name", ["file.data", "pipe.data", "compressed.data", "two_events.data", "many_fields.data", "dwarf.data"]
)
def test_times_cores_and_events_are_those_of_perf_script(name: str, tmp_path: Path) -> None:
    capture, batches = read(name, elsewhere(tmp_path))
    lines = [re.fullmatch(r"\s*\[(\d+)\]\s+(\d+)\.(\d{9}):\s+(\S+):\s*", line) for line in perf_script(name, "cpu,time,event")]
    theirs = sorted((int(line[2] + line[3]), int(line[1]), line[4]) for line in lines if line)
    events = [capture.facts.event_names[number] for number in joined(batches, "event")]
    assert theirs
    assert sorted(zip(joined(batches, "time_ns"), joined(batches, "cpu"), events, strict=True)) == theirs


def test_functions_are_those_of_perf_script(tmp_path: Path) -> None:
    """The innermost kernel function of each sample, from symbols that were kept with the capture."""
    capture, batches = read("file.data", elsewhere(tmp_path, kallsyms=DATA / "kernel_symbols.txt"))
    text = (DATA / "file.script.txt").read_text()
    theirs = Counter(re.findall(r":\s*\n\t *\w+ (\S+)\+0x\w+ \(\[kernel.kallsyms\]\)", text))
    innermost = [capture.stacks.frames_of(stack)[0] for stack in joined(batches, "stack")]
    assert theirs
    assert Counter(frame.function for frame in innermost if frame.kind == "kernel") == theirs


def test_whole_stacks_are_those_of_perf_script(tmp_path: Path) -> None:
    """Kernel frames in their order. perf looks return addresses up as they are, we the call before: at +0x0 it is wrong."""
    capture, batches = read("file.data", elsewhere(tmp_path, kallsyms=DATA / "kernel_symbols.txt"))
    paragraphs = [part.split("\n") for part in (DATA / "file.script.txt").read_text().split("\n\n") if "\t" in part]
    theirs = [[line.split()[1] for line in part if "[kernel.kallsyms]" in line] for part in paragraphs]
    frames = [capture.stacks.frames_of(stack) for stack in joined(batches, "stack")]
    ours = [[frame.function for frame in stack if frame.kind == "kernel"] for stack in frames]
    assert len(ours) == len(theirs)
    for mine, perf in zip(ours, theirs, strict=True):
        assert len(mine) == len(perf)
        assert [name for name, other in zip(mine, perf, strict=True) if not other.endswith("+0x0")] == [
            other.rpartition("+")[0] for other in perf if not other.endswith("+0x0")
        ]


def test_kernel_loaded_elsewhere_is_moved_to_its_place(tmp_path: Path) -> None:
    moved = tmp_path / "kallsyms"
    lines = (DATA / "kernel_symbols.txt").read_text().splitlines()
    moved.write_text("".join(f"{int(line[:16], 16) + 0x1000000:016x}{line[16:]}\n" for line in lines))
    here, ours = read("file.data", elsewhere(tmp_path, kallsyms=DATA / "kernel_symbols.txt"))
    there, theirs = read("file.data", elsewhere(tmp_path, kallsyms=moved))
    assert here.stacks.frames == there.stacks.frames
    assert joined(ours, "stack") == joined(theirs, "stack")


def test_capture_from_another_machine_says_what_it_could_not_name(tmp_path: Path) -> None:
    capture, batches = read("file.data", elsewhere(tmp_path))
    named = [frame for frame in capture.stacks.frames if frame.function is not None]
    assert named == []
    assert any("another kernel" in note for note in capture.notes)
    stacks = joined(batches, "stack")
    count = UnnamedCount(capture.stacks)
    count.add(np.array(stacks, np.int32))
    notes = [re.fullmatch(r"functions of (\S+) could not be named: (\d+) samples", note) for note in count.notes()]
    touched = {note[1]: int(note[2]) for note in notes if note}
    python = next(frame for frame in capture.stacks.frames if "python" in frame.module)
    assert python.build_id is not None
    assert python.offset is not None
    expected = sum(any(frame.module == python.module for frame in capture.stacks.frames_of(stack)) for stack in stacks)
    assert touched[python.module] == expected


def test_directory_of_binaries_is_searched_by_build_id(tmp_path: Path) -> None:
    capture, _ = read("file.data", elsewhere(tmp_path))
    libc = next(frame for frame in capture.stacks.frames if frame.module.endswith("/libc.so.6"))
    folder = tmp_path / "binaries"
    folder.mkdir()
    try:
        shutil.copy(libc.module, folder / "renamed")
    except OSError:
        pytest.skip(f"{libc.module} is not on this machine")
    by_path, _ = read("file.data", SymbolSearch(build_id_cache=None))
    if not any(frame.function for frame in by_path.stacks.frames if frame.module == libc.module):
        pytest.skip("this machine's libc is not that of the capture")
    by_build_id, _ = read("file.data", SymbolSearch(build_id_cache=None, root=tmp_path, binaries=(folder,)))
    assert any(frame.function for frame in by_build_id.stacks.frames if frame.module == libc.module)


def test_file_of_another_build_id_is_not_trusted(tmp_path: Path) -> None:
    capture, _ = read("file.data", elsewhere(tmp_path))
    libc = next(frame for frame in capture.stacks.frames if frame.module.endswith("/libc.so.6"))
    if not Path("/bin/sh").exists():
        pytest.skip("no /bin/sh")
    target = tmp_path / libc.module.lstrip("/")
    target.parent.mkdir(parents=True)
    shutil.copy("/bin/sh", target)
    again, _ = read("file.data", elsewhere(tmp_path))
    assert not [frame for frame in again.stacks.frames if frame.module == libc.module and frame.function]


def test_wall_clock_comes_from_clock_data(tmp_path: Path) -> None:
    capture, batches = read("wall_clock.data", elsewhere(tmp_path))
    assert capture.facts.time_is_wall_clock
    recorded_ns = 1_794_784_560 * 10**9  # 2026-11-15T23:16:00Z, when the file was made
    assert all(abs(time - recorded_ns) < 60 * 10**9 for time in joined(batches, "time_ns"))
    assert capture.facts.first_ns == min(joined(batches, "time_ns"))


def test_capture_without_clock_data_says_why(tmp_path: Path) -> None:
    capture, _ = read("file.data", elsewhere(tmp_path))
    assert not capture.facts.time_is_wall_clock
    assert "-k" in capture.facts.why_not_wall_clock


def test_facts_are_those_of_the_header(tmp_path: Path) -> None:
    for name in ("file.data", "pipe.data"):
        facts = read(name, elsewhere(tmp_path))[0].facts
        assert (facts.host, facts.kernel_release, facts.arch, facts.cpus) == ("vm", "6.18.44-fc-v445", "x86_64", 2)
        assert facts.event_names == ["cpu-clock"]
        assert "record" in (facts.command_line or "")


def test_missing_time_and_core_are_said_to_be_missing(tmp_path: Path) -> None:
    capture, batches = read("no_time.data", elsewhere(tmp_path))
    assert (capture.facts.has_time, capture.facts.has_cpu) == (False, False)
    assert set(joined(batches, "cpu")) == {-1}
    assert set(joined(batches, "time_ns")) == {0}
    capture, batches = read("no_cpu_no_chain.data", elsewhere(tmp_path))
    assert (capture.facts.has_time, capture.facts.has_cpu) == (True, False)
    assert all(len(capture.stacks.frames_of(stack)) == 1 for stack in joined(batches, "stack"))


def test_window_of_a_capture_without_time_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no time"):
        read("no_time.data", elsewhere(tmp_path), from_ns=0)


def test_window_holds_the_samples_of_the_whole_that_lie_in_it(tmp_path: Path) -> None:
    whole, batches = read("file.data", elsewhere(tmp_path))
    times = sorted(joined(batches, "time_ns"))
    begin, end = times[10], times[40]
    part, cut = read("file.data", elsewhere(tmp_path), from_ns=begin, to_ns=end)
    assert joined(cut, "time_ns") == [time for time in times if begin <= time < end]
    wanted = [
        stack for stack, time in zip(joined(batches, "stack"), joined(batches, "time_ns"), strict=True) if begin <= time < end
    ]
    assert [part.stacks.frames_of(s) for s in joined(cut, "stack")] == [whole.stacks.frames_of(s) for s in wanted]


def test_cgroups_are_named(tmp_path: Path) -> None:
    capture, batches = read("many_fields.data", elsewhere(tmp_path))
    assert {capture.cgroups.texts[number] for number in joined(batches, "cgroup")} == {"/"}


def test_dwarf_stacks_show_the_innermost_user_function(tmp_path: Path) -> None:
    capture, batches = read("dwarf.data", elsewhere(tmp_path))
    assert any("not unwound" in note for note in capture.notes)
    kinds = [[frame.kind for frame in capture.stacks.frames_of(stack)] for stack in joined(batches, "stack")]
    assert all(kind.count("user") <= 1 for kind in kinds)
    assert sum(kind[-1:] == ["user"] for kind in kinds) > len(kinds) / 2


def test_build_ids_of_mappings_are_used(tmp_path: Path) -> None:
    by_feature = {frame.module: frame.build_id for frame in read("file.data", elsewhere(tmp_path))[0].stacks.frames}
    by_mapping = {frame.module: frame.build_id for frame in read("buildid_mmap.data", elsewhere(tmp_path))[0].stacks.frames}
    shared = [module for module in by_feature.keys() & by_mapping.keys() if module.startswith("/")]
    assert shared
    assert all(by_feature[module] == by_mapping[module] for module in shared)


def test_reading_twice_gives_the_same(tmp_path: Path) -> None:
    capture = open_perf_data(DATA / "file.data", elsewhere(tmp_path))
    first, second = list(capture.batches()), list(capture.batches())
    assert joined(first, "stack") == joined(second, "stack")
    assert capture.notes == list(dict.fromkeys(capture.notes))


def test_parents_have_smaller_numbers_than_their_children(tmp_path: Path) -> None:
    stacks = read("compressed.data", elsewhere(tmp_path))[0].stacks
    assert np.all(np.array(stacks.parents) < np.arange(len(stacks)))


def test_cut_file_keeps_what_came_before(tmp_path: Path) -> None:
    content = (DATA / "file.data").read_bytes()
    whole = len(joined(read("file.data", elsewhere(tmp_path))[1], "time_ns"))
    cut = tmp_path / "cut.data"
    cut.write_bytes(content[: len(content) // 2])
    capture = open_perf_data(cut, elsewhere(tmp_path))
    samples = sum(len(batch) for batch in capture.batches())
    assert 0 < samples < whole
    assert any(f"cut at byte {len(content) // 2}" in note for note in capture.notes)


def test_file_of_a_killed_perf_is_read_to_its_end(tmp_path: Path) -> None:
    content = bytearray((DATA / "file.data").read_bytes())
    content[48:56] = bytes(8)  # the size of the data, which perf writes last
    killed = tmp_path / "killed.data"
    killed.write_bytes(content)
    capture = open_perf_data(killed, elsewhere(tmp_path))
    assert sum(len(batch) for batch in capture.batches()) == len(joined(read("file.data", elsewhere(tmp_path))[1], "time_ns"))
    assert any("killed" in note for note in capture.notes)


@pytest.mark.parametrize(
    ("content", "error", "match"),
    [
        (b"", UsageError, "begins with"),
        (b"2ELIFREP" + bytes(100), UsageError, "big-endian"),
        (b"PERFFILE" + bytes(100), UsageError, "version 1"),
        (b"PERFILE2", CorruptData, "byte 8"),
        (b"PERFILE2" + (104).to_bytes(8, "little") + bytes(30), CorruptData, "byte 46"),
        (b"PERFILE2" + (16).to_bytes(8, "little"), CorruptData, "no event"),
    ],
)
def test_what_is_no_readable_perf_data_is_an_error_with_facts(
    content: bytes, error: type[Exception], match: str, tmp_path: Path
) -> None:
    path = tmp_path / "bad.data"
    path.write_bytes(content)
    with pytest.raises(error, match=match):
        open_perf_data(path, elsewhere(tmp_path))


def test_missing_file_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read"):
        open_perf_data(tmp_path / "absent")
