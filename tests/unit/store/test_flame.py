"""Flame graphs of drawn recordings."""

from pathlib import Path

import numpy as np
import pytest
from tests.drawn_recording import at, draw, folded

from necroscope.errors import UsageError
from necroscope.model.frame import Frame
from necroscope.model.reading import Gap
from necroscope.store.choices import WORK, GroupBy, State
from necroscope.store.flame import read_flame
from necroscope.store.query import Store
from necroscope.store.selection import Selection
from necroscope.store.time_limit import TimeLimit

MIXED = """
    time:    0.0   0.1    0.2     0.3       0.4                   0.5
    cpu:     0     1      0       1         0                     1
    pid:     7     7      8       9         0                     8
    tid:     7     71     8       9         0                     8
    comm:    sh    sh-io  nginx   v8 12:34  swapper/0             nginx
    cgroup:  /a    /a/b   /ab     .         .                     /ab
             main  main   main    main      do_idle@kernel        main
             read  read   serve   script    net_rx_action@kernel  serve
             .     copy@kernel  .   run@jit  .                    copy@kernel
"""


def flame(path: Path, selection: Selection = Selection(), group_by=(), **options):  # noqa: B008 - it is frozen
    return read_flame(Store.open(path), at(0), at(0.6), selection, group_by, **options)


def test_paths_and_weights_are_those_that_were_drawn(tmp_path):
    tree = flame(draw(tmp_path / "r", MIXED))
    assert folded(tree) == {
        "main;read": 1,
        "main;read;copy": 1,
        "main;serve": 1,
        "main;serve;copy": 1,
        "main;script;run": 1,
        "do_idle;net_rx_action": 1,
    }
    assert tree.samples == 6
    roots = tree.parent < 0
    assert sorted(tree.total_weight[roots].tolist()) == [1, 5]
    assert (tree.parent < np.arange(len(tree.parent))).all()
    assert Frame("copy", "[kernel]", "kernel", None, None) in tree.frames


@pytest.mark.parametrize(
    ("selection", "paths"),
    [
        (Selection.of(cpus=[1]), {"main;read;copy", "main;script;run", "main;serve;copy"}),
        (Selection.of(cpus=[0, 1], pids=[8]), {"main;serve", "main;serve;copy"}),
        (Selection.of(tids=[71]), {"main;read;copy"}),
        (Selection.of(comms=["nginx"]), {"main;serve", "main;serve;copy"}),
        (Selection.of(comms=["v8 12:34"]), {"main;script;run"}),
        (Selection.of(cgroup="/a"), {"main;read", "main;read;copy"}),
        (Selection.of(cgroup="/a/b/"), {"main;read;copy"}),
        (Selection.of(states=[State.KERNEL]), {"main;read;copy", "main;serve;copy"}),
        (Selection.of(states=[State.USER]), {"main;read", "main;serve", "main;script;run"}),
        (Selection.of(states=[State.INTERRUPT]), {"do_idle;net_rx_action"}),
        (Selection.of(frames="^re"), {"main;read", "main;read;copy"}),
        (Selection.of(frames=r"\[jit\]"), {"main;script;run"}),
        (Selection.of(cpus=[5]), set()),
    ],
)
def test_a_selection_takes_the_samples_it_says(tmp_path, selection, paths):
    tree = flame(draw(tmp_path / "r", MIXED), selection)
    assert set(folded(tree)) == paths
    assert tree.samples == len(paths)
    assert tree.left_out[-1].startswith(f"{6 - len(paths)} samples ")


def test_groups_are_the_outermost_frames(tmp_path):
    recording = draw(tmp_path / "r", MIXED)
    by_process = flame(recording, group_by=[GroupBy.PROCESS])
    assert set(folded(by_process)) == {
        "sh (7);main;read",
        "sh (7);main;read;copy",
        "nginx (8);main;serve",
        "nginx (8);main;serve;copy",
        "v8 12:34 (9);main;script;run",
        "swapper/0 (0);do_idle;net_rx_action",
    }
    group = by_process.frames[by_process.frame[np.flatnonzero(by_process.parent < 0)[0]]]
    assert (group.kind, group.module) == ("group", "process")
    assert "sh-io (71);main;read;copy" in folded(flame(recording, group_by=[GroupBy.THREAD]))
    assert "core 1;main;read;copy" in folded(flame(recording, group_by=[GroupBy.CORE]))
    assert "interrupt on an idle core;do_idle;net_rx_action" in folded(
        flame(recording, group_by=[GroupBy.STATE])
    )
    nested = folded(flame(recording, group_by=[GroupBy.CGROUP, GroupBy.CORE, GroupBy.NAME]))
    assert "/ab;core 0;nginx;main;serve" in nested
    assert "/ab;core 1;nginx;main;serve;copy" in nested
    assert sum(nested.values()) == 6


def test_a_process_is_called_by_its_first_thread_whichever_thread_works_most(tmp_path):
    recording = draw(
        tmp_path / "r",
        "tid: 7  71  71  71\n comm: java  C2 Compiler  C2 Compiler  C2 Compiler\n a  a  a  a",
    )
    assert folded(flame(recording, group_by=[GroupBy.PROCESS])) == {"java (7);a": 4}
    assert folded(flame(recording, Selection.of(tids=[71]), [GroupBy.PROCESS])) == {
        "C2 Compiler (7);a": 3
    }


def test_turned_begins_at_the_innermost_frame(tmp_path):
    recording = draw(tmp_path / "r", "a  a  b\n f  g  f\n x@kernel  x@kernel  .")
    tree = flame(recording, is_turned=True)
    assert folded(tree) == {"x;f;a": 1, "x;g;a": 1, "f;b": 1}
    assert {
        tree.frames[tree.frame[n]].function: int(tree.total_weight[n])
        for n in np.flatnonzero(tree.parent < 0)
    } == {
        "x": 2,
        "f": 1,
    }
    assert folded(flame(recording, group_by=[GroupBy.CORE], is_turned=True)) == {
        "core 0;x;f;a": 1,
        "core 0;x;g;a": 1,
        "core 0;f;b": 1,
    }


def test_cut_begins_at_the_outermost_frame_that_matches(tmp_path):
    recording = draw(
        tmp_path / "r", "a  b  b  c\n walk  walk  x  x\n leaf  walk  walk  .\n .  leaf  .  ."
    )
    tree = flame(recording, Selection.of(frames="walk"), is_cut=True)
    assert folded(tree) == {"walk;leaf": 1, "walk;walk;leaf": 1, "walk": 1}
    assert tree.samples == 3


def test_stacks_of_several_segments_are_one_tree(tmp_path):
    recording = draw(
        tmp_path / "r", "a  a\n f  g", "time: 0.2  0.3\n b  a\n h  f", "time: 0.4\n a\n f", live=1
    )
    tree = flame(recording)
    assert folded(tree) == {"a;f": 3, "a;g": 1, "b;h": 1}
    assert len(tree.parent) == 5
    assert flame(recording, group_by=[GroupBy.PROCESS]).samples == 5


def test_many_stacks_are_merged_on_the_way(tmp_path, monkeypatch):
    monkeypatch.setattr("necroscope.store.stack_weights._PENDING_STACKS", 1)
    recording = draw(
        tmp_path / "r", "a  a\n f  g", "time: 0.2  0.3\n b  a\n h  f", "time: 0.4\n a\n f"
    )
    assert folded(flame(recording)) == {"a;f": 3, "a;g": 1, "b;h": 1}
    assert folded(flame(recording, group_by=[GroupBy.NAME])) == {
        "sh;a;f": 3,
        "sh;a;g": 1,
        "sh;b;h": 1,
    }


def test_weights_count_not_rows(tmp_path):
    tree = flame(
        draw(
            tmp_path / "r", "weight: 5  1000000000000\n a  b".replace("1000000000000", "2000000000")
        )
    )
    assert folded(tree) == {"a": 5, "b": 2_000_000_000}
    assert tree.samples == 2_000_000_005


def test_an_unnamed_frame_keeps_its_module_and_offset(tmp_path):
    tree = flame(draw(tmp_path / "r", "?+77@/bin/x  ?+78@/bin/x"))
    assert folded(tree) == {"/bin/x+77": 1, "/bin/x+78": 1}


# FlameScope's defects.


def test_interrupt_on_idle_core_is_work(tmp_path):
    idle = (
        "pid: 0  0  0\n cpu_startup_entry@kernel  cpu_startup_entry@kernel "
        " cpu_startup_entry@kernel\n"
    )
    idle += (
        "intel_idle@kernel  intel_idle@kernel  intel_idle@kernel\n .  asm_common_interrupt@kernel "
        " handle_softirqs@kernel"
    )
    recording = draw(tmp_path / "r", idle)
    tree = flame(recording)
    assert folded(tree) == {
        "cpu_startup_entry;intel_idle;asm_common_interrupt": 1,
        "cpu_startup_entry;intel_idle;handle_softirqs": 1,
    }
    assert tree.left_out[-1] == "1 samples are idle or in another state that was not asked for"
    assert folded(flame(recording, Selection.of(states=[State.IDLE]))) == {
        "cpu_startup_entry;intel_idle": 1
    }
    assert flame(recording, Selection.of(states=[*WORK, State.IDLE])).samples == 3


def test_a_task_that_is_called_idle_is_no_idle_core(tmp_path):
    assert folded(flame(draw(tmp_path / "r", "pid: 12\n cpu_idle_poll@kernel"))) == {
        "cpu_idle_poll": 1
    }


def test_comm_with_digits_spaces_and_colons_is_whole(tmp_path):
    recording = draw(tmp_path / "r", "comm: kworker/12:3-mm  C2 CompilerThre  0\n a  b  c")
    assert set(folded(flame(recording, group_by=[GroupBy.NAME]))) == {
        "kworker/12:3-mm;a",
        "C2 CompilerThre;b",
        "0;c",
    }
    assert folded(flame(recording, Selection.of(comms=["kworker/12:3-mm"]))) == {"a": 1}


def test_a_last_sample_out_of_order_still_counts(tmp_path):
    recording = draw(tmp_path / "r", "time: 0.2  0.5  0.1\n a  b  c")
    assert folded(flame(recording)) == {"a": 1, "b": 1, "c": 1}


@pytest.mark.parametrize("live", [0, 1])
def test_a_range_past_the_end_is_answered_for_the_part_there_is(tmp_path, live):
    store = Store.open(draw(tmp_path / "r", "time: 0  1  2\n a  b  c", live=live))
    tree = read_flame(store, at(1), at(100))
    assert folded(tree) == {"b": 1, "c": 1}
    assert (tree.from_ns, tree.to_ns) == (at(1), at(2) + 1)
    assert tree.left_out == [
        "2025-10-09T08:53:22.000Z to 2025-10-09T08:55:00.000Z: the recording ends before it"
    ]
    outside = read_flame(store, at(50), at(100))
    assert (outside.samples, folded(outside)) == (0, {})
    assert outside.left_out == [
        "2025-10-09T08:54:10.000Z to 2025-10-09T08:55:00.000Z: nothing was recorded"
    ]
    before = read_flame(store, at(-10), at(1))
    assert before.left_out == [
        "2025-10-09T08:53:10.000Z to 2025-10-09T08:53:20.000Z: the recording begins after it"
    ]
    assert folded(before) == {"a": 1}


# What an answer leaves out.


def test_gaps_in_the_window_are_reported(tmp_path):
    gaps = [
        Gap("samples", at(0.1), at(0.2), "ring overran", 1, 3),
        Gap("cores", at(0), at(1), "not of samples"),
    ]
    gaps += [Gap("samples", at(5), at(6), "after the window")]
    tree = flame(draw(tmp_path / "r", "a  a", gaps=gaps, until=10))
    assert tree.left_out == [
        "2025-10-09T08:53:20.100Z to 2025-10-09T08:53:20.200Z: ring overran, core 1, 3 lost"
    ]


def test_samples_whose_stack_is_damaged_are_counted_not_shown(tmp_path):
    recording = draw(tmp_path / "r", "a  b\n f  g", "time: 0.3\n c")
    stacks = min(recording.glob("*Z/stacks.parquet"))
    stacks.write_bytes(stacks.read_bytes()[:20] + b"\0" + stacks.read_bytes()[21:])
    tree = flame(recording)
    assert folded(tree) == {"c": 1}
    assert any(words.startswith("2 samples have lost their stack") for words in tree.left_out)
    assert any("checksum" in words for words in tree.left_out)
    assert folded(flame(recording, group_by=[GroupBy.PROCESS, GroupBy.STATE])) == {
        "sh (7);user;c": 1
    }


def test_the_time_limit_stops_between_segments_and_says_where(tmp_path):
    moments = iter([0.0, 0.5, 1.5])
    store = Store.open(draw(tmp_path / "r", "a  a", "time: 0.3\n b", "time: 0.4\n c"))
    tree = read_flame(store, at(0), at(0.6), limit=TimeLimit(1, clock=lambda: next(moments)))
    assert folded(tree) == {"a": 2}
    assert tree.to_ns == at(0.3)
    words = (
        "the time limit of 1 s: 2025-10-09T08:53:20.300Z to 2025-10-09T08:53:20.600Z was not read"
    )
    assert tree.left_out == [words]


def test_the_time_limit_also_stops_within_a_segment(tmp_path, monkeypatch):
    monkeypatch.setattr("necroscope.store.window_reading._ROWS_AT_ONCE", 1)
    moments = iter([0.0, 0.5, 0.6, 1.5])
    store = Store.open(draw(tmp_path / "r", "time: 0  0.2  0.4  0.6\n a  b  c  d"))
    tree = read_flame(store, at(0), at(0.7), limit=TimeLimit(1, clock=lambda: next(moments)))
    assert folded(tree) == {"a": 1, "b": 1}
    assert "was not read" in tree.left_out[0]
    assert read_flame(store, at(0), at(0.7)).samples == 4


def test_an_expression_that_is_none_is_a_usage_error():
    with pytest.raises(UsageError, match="not a valid regular expression"):
        Selection.of(frames="f(")
