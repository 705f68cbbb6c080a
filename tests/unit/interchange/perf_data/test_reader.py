"""Real perf.data files against what `perf script` says of them, and against what their makers asked
for.
"""

import re
import shutil
import subprocess
from collections import Counter
from pathlib import Path

import pytest
from tests.read_capture import Read, read_capture

from necroscope.errors import CorruptData, UsageError
from necroscope.interchange.capture import ImportPlan
from necroscope.interchange.import_profile import ImportProfile
from necroscope.interchange.importer import Options, import_files
from necroscope.interchange.perf_data.reader import open_perf_data
from necroscope.interchange.symbol_search import SymbolSearch

DATA = Path(__file__).parents[3] / "data" / "interchange"
CAPTURES = sorted(path.name for path in DATA.glob("*.data"))


def elsewhere(tmp_path: Path, **given: Path) -> SymbolSearch:
    """A search that finds nothing but what is given: another machine's."""
    return SymbolSearch(build_id_cache=None, root=tmp_path, **given)


def read(name: str, search: SymbolSearch, **plan: int | str) -> Read:
    return read_capture(open_perf_data(DATA / name, search), **plan)


def perf_script(name: str, fields: str) -> list[str]:
    if shutil.which("perf") is None:
        pytest.skip("perf is not installed")
    found = subprocess.run(
        ["perf", "script", "-f", "--ns", "-G", "-i", str(DATA / name), "-F", fields],
        capture_output=True,
        text=True,
        check=False,
    )
    if found.returncode:
        pytest.skip(f"perf cannot read the file: {found.stderr[:100]}")
    return found.stdout.splitlines()


@pytest.mark.parametrize("name", [name for name in CAPTURES if name != "group.data"])
def test_tasks_are_those_of_perf_script(name: str, tmp_path: Path) -> None:
    """`group.data` is left out: perf makes a second sample of each group's other event."""
    ours = read(name, elsewhere(tmp_path))
    lines = [
        re.fullmatch(r"\s*(.*?)\s+(-?\d+)/(-?\d+)\s*", line)
        for line in perf_script(name, "comm,pid,tid")
    ]
    theirs = Counter((line[1], int(line[2]), int(line[3])) for line in lines if line)
    assert theirs
    assert Counter(zip(ours.comm, ours.pid, ours.tid, strict=True)) == theirs


@pytest.mark.parametrize(
    "name",
    [
        "file.data",
        "pipe.data",
        "compressed.data",
        "two_events.data",
        "many_fields.data",
        "dwarf.data",
    ],
)
def test_times_cores_and_events_are_those_of_perf_script(name: str, tmp_path: Path) -> None:
    names = open_perf_data(DATA / name).facts.event_names
    by_event = {event: read(name, elsewhere(tmp_path), event=event) for event in names}
    lines = [
        re.fullmatch(r"\s*\[(\d+)\]\s+(\d+)\.(\d{9}):\s+(\S+):\s*", line)
        for line in perf_script(name, "cpu,time,event")
    ]
    theirs = sorted((int(line[2] + line[3]), int(line[1]), line[4]) for line in lines if line)
    ours = [
        (time, cpu, event)
        for event, found in by_event.items()
        for time, cpu in zip(found.time_ns, found.cpu, strict=True)
    ]
    assert theirs
    assert sorted(ours) == theirs


def test_functions_are_those_of_perf_script(tmp_path: Path) -> None:
    """The innermost kernel function of each sample, from symbols that were kept with the
    capture.
    """
    ours = read("file.data", elsewhere(tmp_path, kallsyms=DATA / "kernel_symbols.txt"))
    text = (DATA / "file.script.txt").read_text()
    theirs = Counter(re.findall(r":\s*\n\t *\w+ (\S+)\+0x\w+ \(\[kernel.kallsyms\]\)", text))
    innermost = [stack[0] for stack in ours.stacks]
    assert theirs
    assert Counter(frame.function for frame in innermost if frame.kind == "kernel") == theirs


def test_whole_stacks_are_those_of_perf_script(tmp_path: Path) -> None:
    """Kernel frames in their order. perf looks return addresses up as they are, we the call before:
    at +0x0 it is wrong.
    """
    read_here = read("file.data", elsewhere(tmp_path, kallsyms=DATA / "kernel_symbols.txt"))
    paragraphs = [
        part.split("\n")
        for part in (DATA / "file.script.txt").read_text().split("\n\n")
        if "\t" in part
    ]
    theirs = [
        [line.split()[1] for line in part if "[kernel.kallsyms]" in line] for part in paragraphs
    ]
    ours = [
        [frame.function for frame in stack if frame.kind == "kernel"] for stack in read_here.stacks
    ]
    assert len(ours) == len(theirs)
    for mine, perf in zip(ours, theirs, strict=True):
        assert len(mine) == len(perf)
        assert [
            name for name, other in zip(mine, perf, strict=True) if not other.endswith("+0x0")
        ] == [other.rpartition("+")[0] for other in perf if not other.endswith("+0x0")]


def test_kernel_loaded_elsewhere_is_moved_to_its_place(tmp_path: Path) -> None:
    moved = tmp_path / "kallsyms"
    lines = (DATA / "kernel_symbols.txt").read_text().splitlines()
    moved.write_text(
        "".join(f"{int(line[:16], 16) + 0x1000000:016x}{line[16:]}\n" for line in lines)
    )
    here = read("file.data", elsewhere(tmp_path, kallsyms=DATA / "kernel_symbols.txt"))
    there = read("file.data", elsewhere(tmp_path, kallsyms=moved))
    assert any(function for stack in here.functions for function in stack)
    assert here.stacks == there.stacks


def test_capture_from_another_machine_says_what_it_could_not_name(tmp_path: Path) -> None:
    found = read("file.data", elsewhere(tmp_path))
    assert not [frame for frame in found.frames if frame.function is not None]
    assert any("another kernel" in note for note in found.capture.notes)
    report = import_files(
        [DATA / "file.data"], tmp_path / "out", Options(search=elsewhere(tmp_path))
    )
    notes = [
        re.fullmatch(r"functions of (\S+) could not be named: (\d+) samples", note)
        for note in report.unnamed
    ]
    touched = {note[1]: int(note[2]) for note in notes if note}
    python = next(frame for frame in found.frames if "python" in frame.module)
    assert python.build_id is not None
    assert python.offset is not None
    assert touched[python.module] == sum(
        any(frame.module == python.module for frame in stack) for stack in found.stacks
    )


def test_directory_of_binaries_is_searched_by_build_id(tmp_path: Path) -> None:
    libc = next(
        frame
        for frame in read("file.data", elsewhere(tmp_path)).frames
        if frame.module.endswith("/libc.so.6")
    )
    folder = tmp_path / "binaries"
    folder.mkdir()
    try:
        shutil.copy(libc.module, folder / "renamed")
    except OSError:
        pytest.skip(f"{libc.module} is not on this machine")
    by_path = read("file.data", SymbolSearch(build_id_cache=None))
    if not any(frame.function for frame in by_path.frames if frame.module == libc.module):
        pytest.skip("this machine's libc is not that of the capture")
    by_build_id = read(
        "file.data", SymbolSearch(build_id_cache=None, root=tmp_path, binaries=(folder,))
    )
    assert any(frame.function for frame in by_build_id.frames if frame.module == libc.module)


def test_file_of_another_build_id_is_not_trusted(tmp_path: Path) -> None:
    libc = next(
        frame
        for frame in read("file.data", elsewhere(tmp_path)).frames
        if frame.module.endswith("/libc.so.6")
    )
    if not Path("/bin/sh").exists():
        pytest.skip("no /bin/sh")
    target = tmp_path / libc.module.lstrip("/")
    target.parent.mkdir(parents=True)
    shutil.copy("/bin/sh", target)
    again = read("file.data", elsewhere(tmp_path))
    assert not [frame for frame in again.frames if frame.module == libc.module and frame.function]


def test_wall_clock_comes_from_clock_data(tmp_path: Path) -> None:
    found = read("wall_clock.data", elsewhere(tmp_path))
    assert found.capture.facts.time_is_wall_clock
    recorded_ns = 1_794_784_560 * 10**9  # 2026-11-15T23:16:00Z, when the file was made
    assert all(abs(time - recorded_ns) < 60 * 10**9 for time in found.time_ns)
    assert found.capture.facts.first_ns == min(found.time_ns)


def test_capture_without_clock_data_says_why() -> None:
    facts = open_perf_data(DATA / "file.data").facts
    assert not facts.time_is_wall_clock
    assert "-k" in facts.why_not_wall_clock


def test_facts_are_those_of_the_header() -> None:
    for name in ("file.data", "pipe.data"):
        facts = open_perf_data(DATA / name).facts
        assert (facts.host, facts.kernel_release, facts.arch, facts.cpus) == (
            "vm",
            "6.18.44-fc-v445",
            "x86_64",
            2,
        )
        assert facts.event_names == ["cpu-clock"]
        assert "record" in (facts.command_line or "")


def test_missing_time_and_core_are_said_to_be_missing(tmp_path: Path) -> None:
    found = read("no_time.data", elsewhere(tmp_path))
    assert not found.capture.facts.has_time
    assert set(found.cpu) == {-1}
    assert set(found.time_ns) == {0}
    found = read("no_cpu_no_chain.data", elsewhere(tmp_path))
    assert found.capture.facts.has_time
    assert all(len(stack) == 1 for stack in found.stacks)


def test_window_of_a_capture_without_time_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no time"):
        read("no_time.data", elsewhere(tmp_path), from_ns=1)


def test_window_holds_the_samples_of_the_whole_that_lie_in_it(tmp_path: Path) -> None:
    whole = read("file.data", elsewhere(tmp_path))
    begin, end = whole.time_ns[10], whole.time_ns[40]
    part = read("file.data", elsewhere(tmp_path), from_ns=begin, to_ns=end)
    wanted = [
        stack
        for stack, time in zip(whole.stacks, whole.time_ns, strict=True)
        if begin <= time < end
    ]
    assert part.time_ns == [time for time in whole.time_ns if begin <= time < end]
    assert part.stacks == wanted


def test_segments_hold_the_samples_of_the_whole(tmp_path: Path) -> None:
    """Cut at any time: the same samples with the same stacks, numbered from 0 in each segment."""
    whole = read("file.data", elsewhere(tmp_path))
    first, length = whole.time_ns[0], (whole.time_ns[-1] - whole.time_ns[0]) // 7
    capture, profile = (
        open_perf_data(DATA / "file.data", elsewhere(tmp_path)),
        ImportProfile(keeps_idle=True),
    )

    def segment_at(time_ns: int) -> tuple[int, int]:
        number = max(time_ns - first, 0) // length
        return number, first + (number + 1) * length

    times, stacks, numberings = [], [], {}
    for batch in capture.batches(ImportPlan(profile, segment_at=segment_at)):
        assert {segment_at(time)[0] for time in batch.time_ns} == {batch.segment}
        numberings[batch.segment] = profile.numbering
        times += batch.time_ns.tolist()
        stacks += [profile.names.stack(stack) for stack in batch.stack]
    assert len(set(numberings.values())) == len(numberings) > 5
    assert times == whole.time_ns
    assert stacks == whole.stacks


def test_cgroups_are_named(tmp_path: Path) -> None:
    assert set(read("many_fields.data", elsewhere(tmp_path)).cgroup) == {"/"}


def test_dwarf_stacks_show_the_innermost_user_function(tmp_path: Path) -> None:
    found = read("dwarf.data", elsewhere(tmp_path))
    assert any("not unwound" in note for note in found.capture.notes)
    kinds = [[frame.kind for frame in stack] for stack in found.stacks]
    assert all(kind.count("user") <= 1 for kind in kinds)
    assert sum(kind[-1:] == ["user"] for kind in kinds) > len(kinds) / 2


def test_build_ids_of_mappings_are_used(tmp_path: Path) -> None:
    by_feature = {
        frame.module: frame.build_id for frame in read("file.data", elsewhere(tmp_path)).frames
    }
    by_mapping = {
        frame.module: frame.build_id
        for frame in read("buildid_mmap.data", elsewhere(tmp_path)).frames
    }
    shared = [module for module in by_feature.keys() & by_mapping.keys() if module.startswith("/")]
    assert shared
    assert all(by_feature[module] == by_mapping[module] for module in shared)


def test_reading_twice_gives_the_same(tmp_path: Path) -> None:
    capture = open_perf_data(DATA / "file.data", elsewhere(tmp_path))
    first, second = read_capture(capture), read_capture(capture)
    assert (first.stack, first.frames) == (second.stack, second.frames)
    assert capture.notes == list(dict.fromkeys(capture.notes))


def test_parents_have_smaller_numbers_than_their_children(tmp_path: Path) -> None:
    parents = memoryview(
        read("compressed.data", elsewhere(tmp_path)).profile.core.stacks()[0]
    ).cast("i")
    assert all(parent < number for number, parent in enumerate(parents))


def test_cut_file_keeps_what_came_before(tmp_path: Path) -> None:
    content = (DATA / "file.data").read_bytes()
    cut = tmp_path / "cut.data"
    cut.write_bytes(content[: len(content) // 2])
    found = read_capture(open_perf_data(cut, elsewhere(tmp_path)))
    assert 0 < len(found) < len(read("file.data", elsewhere(tmp_path)))
    assert any(f"cut at byte {len(content) // 2}" in note for note in found.capture.notes)


def test_file_of_a_killed_perf_is_read_to_its_end(tmp_path: Path) -> None:
    content = bytearray((DATA / "file.data").read_bytes())
    content[48:56] = bytes(8)  # the size of the data, which perf writes last
    killed = tmp_path / "killed.data"
    killed.write_bytes(content)
    found = read_capture(open_perf_data(killed, elsewhere(tmp_path)))
    assert len(found) == len(read("file.data", elsewhere(tmp_path)))
    assert any("killed" in note for note in found.capture.notes)


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
