"""Where boxes lie: callees side by side above their caller, in order of name, and what is not drawn
is counted.
"""

import numpy as np

from necroscope.model.frame import Frame
from necroscope.stacks.differential import DifferentialTree
from necroscope.stacks.flame_tree import FlameTree
from necroscope.views.flame.boxes import BoxChange, Boxes, boxes_of, differential_boxes, shown


def named(boxes: Boxes) -> dict[str, int]:
    return {boxes.names[name].text: box for box, name in enumerate(boxes.name.tolist())}


def test_a_callee_lies_within_its_caller(tree: FlameTree) -> None:
    boxes = boxes_of(tree, 0, 100)
    inner = np.arange(1, len(boxes))
    outer = boxes.parent[inner]
    assert (boxes.left[inner] >= boxes.left[outer]).all()
    assert (boxes.left[inner] + boxes.width[inner] <= boxes.left[outer] + boxes.width[outer]).all()
    assert (boxes.depth[inner] == boxes.depth[outer] + 1).all()


def test_siblings_are_in_order_of_name_and_do_not_overlap(tree: FlameTree) -> None:
    boxes = boxes_of(tree, 0, 100)
    place = named(boxes)
    assert (boxes.left[place["eval"]], boxes.width[place["eval"]]) == (0, 15)
    assert (boxes.left[place["work"]], boxes.width[place["work"]]) == (15, 80)
    assert boxes.left[place["nginx"]] == 95


def test_box_0_is_all_samples(tree: FlameTree) -> None:
    boxes = boxes_of(tree, 0, 100)
    assert (boxes.names[boxes.name[0]].text, boxes.window.total[0], boxes.width[0]) == (
        "all",
        100,
        boxes.ruler,
    )


def test_what_is_too_narrow_is_counted_with_its_samples(tree: FlameTree) -> None:
    boxes = boxes_of(tree, 0.10, 100)
    assert "nginx" not in named(boxes)
    assert (boxes.cut.frames, boxes.cut.weight) == (3, 5)


def test_what_is_too_deep_is_counted_with_its_samples(tree: FlameTree) -> None:
    boxes = boxes_of(tree, 0, 3)
    assert boxes.depth.max() == 3
    assert (boxes.cut.frames, boxes.cut.weight) == (2, 60)


def test_no_samples_are_one_empty_box(tree: FlameTree) -> None:
    none = np.zeros(0, np.int32)
    empty = FlameTree(none, none, none.astype(np.int64), none.astype(np.int64), [], 0, 1, 0, [])
    assert len(boxes_of(empty, 0, 100)) == 1


def test_a_differential_tells_new_from_grown_and_gone_from_shrunk(
    differential: DifferentialTree,
) -> None:
    boxes = differential_boxes(differential, 0, 100)
    change = {name: BoxChange(int(boxes.change[box])) for name, box in named(boxes).items()}
    assert change["mem_cgroup_iter"] is BoxChange.NEW
    assert change["old_code"] is BoxChange.GONE
    assert change["do_syscall_64"] is BoxChange.GREW
    assert change["eval"] is BoxChange.SAME
    assert boxes.width[named(boxes)["old_code"]] == boxes.ruler // 20


def test_a_differential_s_callee_lies_within_its_caller(differential: DifferentialTree) -> None:
    boxes = differential_boxes(differential, 0, 100)
    outer = boxes.parent[1:]
    assert (boxes.left[1:] + boxes.width[1:] <= boxes.left[outer] + boxes.width[outer]).all()


def test_a_nameless_frame_is_shown_by_module_and_offset() -> None:
    assert (
        shown(Frame(None, "/usr/lib/libc.so.6", "user", 0x1F3A0, None)).text == "libc.so.6+0x1f3a0"
    )
    assert shown(Frame(None, "[unknown]", "user", None, None)).text == "[unknown]"
