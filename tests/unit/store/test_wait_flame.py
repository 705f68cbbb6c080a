"""The flame graph of waits."""

from pathlib import Path

from tests.drawn_node import at, drawn_node
from tests.drawn_waits import by, wait
from tests.growing_recording import GrowingRecording

from necroscope.model.span import Span
from necroscope.stacks.flame_tree import FlameTree
from necroscope.store.query import Store
from necroscope.store.selection import Selection
from necroscope.store.wait_flame import read_wait_flame


def paths(tree: FlameTree) -> dict[str, int]:
    own = [row for row in range(len(tree)) if tree.self_weight[row]]
    return {
        ";".join(tree.frames[frame].function or "" for frame in path): int(tree.self_weight[row])
        for row, path in zip(own, tree.paths(own), strict=True)
    }


def test_waits_are_below_their_program_and_kind_in_milliseconds(tmp_path: Path) -> None:
    node = drawn_node("core 0:  ....................\ncore 1:  ....................")
    wait(node, 5, 0.95, "raylet", 70, **by("spin", 9, policy="fifo", ran_ns=10**9))
    wait(node, 5, 0.25, "etcd", 80, stack="ext4_sync_file;do_fsync")
    for lasted in (1.0, 2.0):
        wait(node, 8, lasted, "etcd", 81, stack="ext4_sync_file;do_fsync", is_open=True)
    store = Store.open(GrowingRecording(tmp_path / "r", node).grow(20).directory)
    window = Span(at(0), at(20))
    assert paths(read_wait_flame(store, window, Selection())) == {
        "raylet;[waits for a core];[behind spin]": 950,
        "etcd;[sleeps in the kernel];do_fsync;ext4_sync_file": 2250,
    }
    only = read_wait_flame(store, window, Selection.of(comms=["raylet"]))
    assert list(paths(only).values()) == [950]


def test_of_a_wait_the_part_within_the_window_counts(tmp_path: Path) -> None:
    node = drawn_node("core 0:  ....................\ncore 1:  ....................")
    wait(node, 5, 2, "raylet", 70, **by("spin", 9))
    wait(node, 9, 6, "etcd", 80, stack="do_fsync")
    store = Store.open(GrowingRecording(tmp_path / "r", node).grow(20).directory)
    assert paths(read_wait_flame(store, Span(at(6), at(11)), Selection())) == {
        "raylet;[waits for a core];[behind spin]": 1000,
        "etcd;[sleeps in the kernel];do_fsync": 2000,
    }
