"""Files of every kind become a recording that the store answers from."""

import gzip
import os
import shutil
from pathlib import Path

import numpy as np
import pytest
from tests.read_capture import read_capture

from necroscope.errors import RecordingError, UsageError
from necroscope.interchange.importer import Options, import_files
from necroscope.interchange.perf_data.format import FEATURE_SAMPLE_TIME
from necroscope.interchange.perf_data.header import read_header
from necroscope.interchange.perf_data.reader import open_perf_data
from necroscope.interchange.perf_script import open_perf_script
from necroscope.interchange.profile_event import base_of
from necroscope.interchange.symbol_search import SymbolSearch
from necroscope.store.query import Store

DATA = Path(__file__).parents[2] / "data" / "interchange"
NS = 1_000_000_000
START_NS = 1_776_000_000 * NS
EVER = (0, 1 << 62)
SEARCH = SymbolSearch(
    kallsyms=DATA / "kernel_symbols.txt", build_id_cache=None, root=Path("/nonexistent")
)


def script(*samples: tuple[float, int, str, str]) -> str:
    """Text of `perf script`: time, core, task and innermost function."""
    return "".join(
        f"{comm} {0 if comm == 'swapper' else 7} [{cpu:03d}] {time:.6f}: cpu-clock:"
        f" \n\tffffffff81000010 {function}+0x10 ([kernel.kallsyms])\n\tffffffff81000020"
        " start_it+0x20 ([kernel.kallsyms])\n\n"
        for time, cpu, comm, function in samples
    )


def write_rolling(folder: Path, start_s: int, *samples: tuple[float, int, str, str]) -> Path:
    folder.mkdir(exist_ok=True)
    moment = (
        np.datetime64(START_NS // NS + start_s, "s").astype(str).replace("-", "").replace(":", "")
    )
    path = folder / f"perf-node-a-{moment}-120s.stacks"
    path.write_text(script(*samples))
    return path


def functions(store: Store, *window: int) -> list[str]:
    """The innermost function of each sample, in order of time."""
    found = store.samples(*window)
    frames = found.frames.column("function").to_pylist()
    frame_of = dict(
        zip(
            found.stacks.column("stack").to_pylist(),
            found.stacks.column("frame").to_pylist(),
            strict=True,
        )
    )
    return [frames[frame_of[stack]] for stack in found.samples.column("stack").to_pylist()]


@pytest.mark.parametrize(
    "name",
    ["file.data", "pipe.data", "compressed.data", "no_time.data", "dwarf.data", "file.script.txt"],
)
def test_every_kind_of_capture_becomes_a_recording(tmp_path, name):
    read = (
        open_perf_script(DATA / name)
        if name.endswith(".txt")
        else open_perf_data(DATA / name, SEARCH)
    )
    samples = len(read_capture(read))
    report = import_files(
        [DATA / name], tmp_path / "out", Options(search=SEARCH, labels={"case": "7"})
    )
    info = Store.open(tmp_path / "out").info()
    assert info.tables["samples"] == report.rows["samples"] == samples - report.idle_samples > 0
    assert (info.labels, info.node) == ({"case": "7"}, report.node)
    assert len(Store.open(tmp_path / "out").samples(*EVER).samples) == report.rows["samples"]
    assert os.listdir(tmp_path) == ["out"]


def test_wall_clock_is_that_of_the_capture(tmp_path):
    report = import_files([DATA / "wall_clock.data"], tmp_path / "out", Options(search=SEARCH))
    assert not [note for file in report.files for note in file.notes if "wall clock" in note]
    store = Store.open(tmp_path / "out")
    times = store.rows("samples", *EVER, columns=["time"]).column("time").to_numpy()
    assert times[0] == report.from_ns or report.idle_samples
    second = int(times[len(times) // 2]) // NS * NS
    assert (
        len(store.samples(second, second + NS).samples)
        == ((times >= second) & (times < second + NS)).sum()
        > 0
    )


def test_a_window_leaves_out_the_rest(tmp_path):
    whole = import_files([DATA / "wall_clock.data"], tmp_path / "whole", Options(search=SEARCH))
    middle_ns = (whole.from_ns + whole.to_ns) // 2
    part = import_files(
        [DATA / "wall_clock.data"], tmp_path / "part", Options(search=SEARCH, to_ns=middle_ns)
    )
    kept = Store.open(tmp_path / "whole").rows("samples", 0, middle_ns)
    assert (
        Store.open(tmp_path / "part").rows("samples", *EVER).num_rows
        == kept.num_rows
        == part.rows["samples"]
    )


def test_a_capture_without_wall_clock_is_dated_by_its_last_write_and_says_so(tmp_path):
    copy = tmp_path / "perf.data"
    shutil.copy(DATA / "file.data", copy)
    os.utime(copy, ns=(START_NS, START_NS))
    report = import_files([copy], tmp_path / "out", Options(search=SEARCH))
    assert report.to_ns == START_NS
    assert any(
        "times are not wall clock" in gap.cause for gap in Store.open(tmp_path / "out").info().gaps
    )


def test_the_tail_of_a_text_dates_it(tmp_path):
    path = tmp_path / "x.stacks.gz"
    path.write_bytes(gzip.compress(script((5.0, 0, "a", "f"), (9.5, 1, "a", "g")).encode()))
    os.utime(path, ns=(START_NS, START_NS))
    report = import_files([path], tmp_path / "out")
    assert (report.from_ns, report.to_ns) == (START_NS - 4 * NS - NS // 2, START_NS)


def test_idle_samples_are_counted_and_an_interrupt_on_an_idle_core_is_kept(tmp_path):
    folder = tmp_path / "captures"
    write_rolling(
        folder,
        1,
        (1.0, 0, "swapper", "default_idle"),
        (1.1, 0, "swapper", "net_rx_action"),
        (1.2, 0, "a", "default_idle"),
    )
    report = import_files([folder], tmp_path / "out")
    store = Store.open(tmp_path / "out")
    assert (report.idle_samples, store.info().idle_samples) == (1, 1)
    assert functions(store, *EVER) == ["net_rx_action", "default_idle"]


def test_rolling_captures_are_one_recording_with_its_hole(tmp_path):
    folder = tmp_path / "captures"
    write_rolling(folder, 1, (100.0, 0, "a", "first"), (219.0, 0, "a", "second"))
    write_rolling(folder, 401, (500.0, 1, "b", "third"), (619.5, 1, "b", "fourth"))
    (folder / "perf-node-a-20260412T133501-120s.stacks").write_bytes(b"\0\1\2")
    report = import_files([folder], tmp_path / "out")
    store = Store.open(tmp_path / "out")
    info = store.info()
    assert (info.node, info.segments, info.tables["samples"]) == ("node-a", 3, 4)
    hole = next(gap for gap in info.gaps if gap.cause.startswith("no capture between"))
    assert (hole.from_ns, hole.to_ns) == (START_NS + 120 * NS, START_NS + 401 * NS)
    unread = next(gap for gap in info.gaps if "could not be read" in gap.cause)
    assert unread.to_ns - unread.from_ns == 120 * NS
    assert functions(store, START_NS + 401 * NS, START_NS + 402 * NS) == ["third"]
    assert [file.rows for file in report.files] == [2, 2, 0]


def test_all_kinds_lie_on_one_time_axis(tmp_path):
    folder = tmp_path / "captures"
    write_rolling(folder, 1, (100.0, 0, "a", "first"), (101.0, 0, "a", "second"))
    # Its clock since boot is that of the samples: second 100 of both is one moment.
    (tmp_path / "dmesg.txt").write_text(
        "[  100.500000] eth0: NETDEV WATCHDOG: CPU: 3: transmit queue 2 timed out 5000 ms\n"
    )
    import_files(
        [folder, tmp_path / "dmesg.txt", DATA / "mpstat_24h.txt"],
        tmp_path / "out",
        events_of=lambda lines: [
            (time_ns, "said", *[None] * 6, 4, True, None, line.message, None, None)
            for time_ns, line in lines
        ],
    )
    store = Store.open(tmp_path / "out")
    assert store.rows("log", *EVER).column("time").to_pylist() == [START_NS + NS + NS // 2]
    assert store.rows("events", START_NS, START_NS + 2 * NS).num_rows == 1
    assert store.rows("cores", *EVER).num_rows == 6


def test_a_log_with_both_clocks_dates_a_capture(tmp_path):
    (tmp_path / "a.stacks").write_text(script((100.0, 0, "a", "f")))
    (tmp_path / "kern.log").write_text(
        "2026-04-12T13:20:00+00:00 node kernel: [   90.000000] something\n"
    )
    report = import_files([tmp_path / "a.stacks", tmp_path / "kern.log"], tmp_path / "out")
    assert report.to_ns == START_NS + 10 * NS


def test_a_cut_file_keeps_what_came_before(tmp_path):
    whole = import_files([DATA / "file.data"], tmp_path / "whole", Options(search=SEARCH))
    content = (DATA / "file.data").read_bytes()
    (tmp_path / "cut.data").write_bytes(content[: len(content) * 2 // 3])
    report = import_files([tmp_path / "cut.data"], tmp_path / "out", Options(search=SEARCH))
    assert 0 < report.rows["samples"] < whole.rows["samples"]
    assert any("cut at byte" in gap.cause for gap in Store.open(tmp_path / "out").info().gaps)


def test_folded_stacks_have_weights_and_one_segment(tmp_path):
    (tmp_path / "x.folded").write_text(
        "swapper;cpu_startup_entry;default_idle_[k] 50\nmake;main;<script>alert(1)</script> 7\n"
    )
    report = import_files([tmp_path / "x.folded"], tmp_path / "out")
    store = Store.open(tmp_path / "out")
    assert (report.segments, report.idle_samples) == (1, 50)
    assert store.rows("samples", *EVER).column("weight").to_pylist() == [7]
    assert functions(store, *EVER) == ["<script>alert(1)</script>"]


def test_hostile_names_come_in_escaped(tmp_path):
    path = tmp_path / "x.stacks"
    path.write_bytes(script((1.0, 0, "a\x1b[2J\xe2\x80\xae;", "f\x07<b>")).encode("latin-1"))
    import_files([path], tmp_path / "out")
    store = Store.open(tmp_path / "out")
    assert functions(store, *EVER) == ["f\\x07<b>"]
    assert store.rows("samples", *EVER).column("comm").to_pylist() == ["a\\x1b[2J\\u202e;"]


def test_one_event_is_imported_and_the_other_named(tmp_path):
    report = import_files([DATA / "two_events.data"], tmp_path / "out", Options(search=SEARCH))
    assert any("of event task-clock were left out" in note for note in report.files[0].notes)
    other = import_files(
        [DATA / "two_events.data"], tmp_path / "other", Options(search=SEARCH, event="task-clock")
    )
    read = len(read_capture(open_perf_data(DATA / "two_events.data", SEARCH)))
    assert other.files[0].rows + report.files[0].rows == read
    with pytest.raises(UsageError, match="no event 'cycles'"):
        import_files(
            [DATA / "two_events.data"], tmp_path / "none", Options(search=SEARCH, event="cycles")
        )
    assert not (tmp_path / "none").exists()


def test_names_of_one_event_are_known_to_be_one():
    assert [
        base_of(name) for name in ("cycles:P", "cpu_core/cycles/u", "cpu_atom/cycles/", "cycles")
    ] == ["cycles"] * 4
    assert base_of("sched:sched_switch") == "sched:sched_switch"


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("recording.json", "holds a recording"),
        ("2026-01-01T00-00-00.000Z.live", "live"),
        ("x", "something other"),
    ],
)
def test_a_used_directory_is_refused_and_left_alone(tmp_path, entry, why):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / entry).write_text("mine")
    with pytest.raises(RecordingError, match=why):
        import_files([DATA / "file.data"], tmp_path / "out")
    assert os.listdir(tmp_path / "out") == [entry]


def test_bad_input_leaves_nothing_behind(tmp_path):
    (tmp_path / "bad").write_bytes(b"\0\1\2\3" * 100)
    with pytest.raises(UsageError, match="not a file that can be imported"):
        import_files(
            [DATA / "file.data", tmp_path / "bad"], tmp_path / "out", Options(search=SEARCH)
        )
    with pytest.raises(UsageError, match="no samples from 2043"):
        import_files(
            [DATA / "wall_clock.data"], tmp_path / "out", Options(search=SEARCH, from_ns=1 << 61)
        )
    assert os.listdir(tmp_path) == ["bad"]


def test_every_segment_passes_its_own_check(tmp_path):
    folder = tmp_path / "captures"
    write_rolling(
        folder,
        1,
        *(
            (float(second), second % 4, f"task-{second % 3}", f"f{second % 50}")
            for second in range(2000)
        ),
    )
    import_files([folder], tmp_path / "out")
    store = Store.open(tmp_path / "out")
    found = [
        gap for segment in store.catalog.segments for gap in store.catalog.reader(segment).verify()
    ]
    assert all(gap.cause.startswith("perf-node-a") for gap in found), "no gap is of damage"
    assert len(store.catalog.segments) == 7
    assert functions(store, *EVER) == [f"f{second % 50}" for second in range(2000)]


def test_fault_within_a_file_is_reported_with_its_byte_and_its_name_once(tmp_path):
    path = tmp_path / "long.folded"
    path.write_bytes(b"main;work 5\n" + b"f;" * (1 << 22) + b"g 1\n")
    report = import_files([path], tmp_path / "out")
    assert (
        "byte 12: a line of more than 1048576 bytes; what came before was read"
        in report.files[0].notes
    )


def test_end_that_the_head_gives_is_not_trusted(tmp_path):
    """perf stops there to look for build ids: a capture of two minutes may say that it is of 15
    s.
    """
    whole = import_files([DATA / "wall_clock.data"], tmp_path / "whole", Options(search=SEARCH))
    content = (DATA / "wall_clock.data").read_bytes()
    with (DATA / "wall_clock.data").open("rb") as file:
        span = read_header(file, "").features[FEATURE_SAMPLE_TIME]
    assert content.count(span) == 1
    (tmp_path / "short.data").write_bytes(content.replace(span, span[:8] * 2))
    late = Options(search=SEARCH, from_ns=whole.to_ns - 50_000_000)
    assert import_files([tmp_path / "short.data"], tmp_path / "late", late).rows["samples"] > 3


def test_note_that_many_files_have_is_reported_once(tmp_path):
    (tmp_path / "captures").mkdir()
    for minute in ("1030", "1032", "1034"):
        shutil.copy(
            DATA / "file.data", tmp_path / "captures" / f"perf-node-20260415-{minute}-120s.data"
        )
    report = import_files([tmp_path / "captures"], tmp_path / "out", Options(search=SEARCH))
    found = [note for note in report.all_notes() if "times are not wall clock" in note]
    assert len(found) == 1
    assert found[0].startswith("perf-node-20260415-1030-120s.data and 2 more files: times are")


@pytest.mark.parametrize(("bound", "most"), [("MOST_LINES", 3), ("MOST_CHARACTERS", 18)])
def test_lines_beyond_the_bound_are_left_out_and_counted(tmp_path, monkeypatch, bound, most):
    monkeypatch.setattr(f"necroscope.interchange.dmesg.{bound}", most)
    log = tmp_path / "dmesg.txt"
    log.write_text(
        "".join(
            f"kern  :info  : 2026-04-12T13:20:0{second}+00:00 line {second}\n"
            for second in range(8)
        )
    )
    report = import_files([log], tmp_path / "out")
    assert report.rows["log"] == 3
    assert report.all_notes() == [
        "dmesg.txt: 5 lines after the first 3 were left out: give the part of the log that matters",
    ]
    (gap,) = Store.open(tmp_path / "out").info().gaps
    assert "5 lines" in gap.cause


def test_captures_that_lie_over_each_other_keep_their_stacks(tmp_path):
    """Both reach across the end of a segment: the second comes back to one whose stacks are
    numbered already.
    """
    start_s = 300 - START_NS // NS % 300 - 5
    paths = [
        write_rolling(
            tmp_path / name, start_s, *((float(at), 0, name, f"{name}_{at}") for at in range(1, 11))
        )
        for name in "ab"
    ]
    report = import_files([path.parent for path in paths], tmp_path / "out")
    assert report.segments == 2
    store = Store.open(tmp_path / "out")
    found = store.samples(*EVER)
    comms = found.samples.column("comm").to_pylist()
    assert sorted(zip(comms, functions(store, *EVER), strict=True)) == sorted(
        (name, f"{name}_{at}") for name in "ab" for at in range(1, 11)
    )
