"""Folded stacks: one line a path, and no name can break a line."""

import io
import json
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from necroscope.interchange.writers.folded import write_folded
from necroscope.model.frame import Frame
from necroscope.stacks.flame_tree import FlameTree

SCRIPT = Path(__file__).parents[3] / "data/interchange/writers/speedscope_import.js"


def frame(
    function: str | None, kind: str = "user", module: str = "/bin/app", offset: int | None = None
) -> Frame:
    return Frame(function, module, kind, offset, None)


def flame(
    parent: list[int], numbers: list[int], weights: list[int], frames: list[Frame]
) -> FlameTree:
    arrays = [np.array(values, dtype=np.int64) for values in (parent, numbers, weights, weights)]
    return FlameTree(*arrays, frames, 0, 1, sum(weights), [])


def chain(*frames: Frame) -> FlameTree:
    """Each frame calls the next; the innermost has 3 samples."""
    numbers = list(range(len(frames)))
    return flame(
        [number - 1 for number in numbers], numbers, [0] * (len(frames) - 1) + [3], list(frames)
    )


def folded(tree: FlameTree, **options: Any) -> str:
    out = io.BytesIO()
    write_folded(tree, out, **options)
    return out.getvalue().decode()


def test_a_path_is_a_line_with_its_own_samples() -> None:
    tree = flame(
        [-1, 0, 0, 2], [0, 1, 2, 1], [0, 12, 1, 5], [frame("main"), frame("work"), frame("call")]
    )
    assert folded(tree) == "main;call 1\nmain;call;work 5\nmain;work 12\n"


def test_kernel_and_jit_frames_are_annotated_on_request() -> None:
    tree = chain(frame("main"), frame("eval", "jit"), frame("do_syscall_64", "kernel"))
    assert folded(tree, annotate=True) == "main;eval_[j];do_syscall_64_[k] 3\n"
    assert folded(tree) == "main;eval;do_syscall_64 3\n"


def test_separators_in_names_are_escaped() -> None:
    assert (
        folded(chain(frame("a;b"), frame("c\nd 9\r\x07\u2028")))
        == "a\\x3bb;c\\x0ad 9\\x0d\\x07\\u2028 3\n"
    )


def test_a_frame_without_a_symbol_is_its_module_and_offset() -> None:
    nameless = [
        frame(None, module="/usr/lib/libc.so.6", offset=0x1F3A0),
        frame(None, "kernel", "[kernel]", -0x7F00_0000),
    ]
    assert folded(chain(*nameless, frame(None, module="[unknown]"))) == (
        "libc.so.6+0x1f3a0;[kernel]+0xffffffff81000000;[unknown] 3\n"
    )


def test_a_stack_of_ten_thousand_frames_is_one_line() -> None:
    assert folded(chain(*[frame("recurse")] * 10_000)).count(";") == 9_999


@given(st.lists(st.text(), min_size=1, max_size=6))
def test_any_names_are_one_line_with_as_many_frames(names: list[str]) -> None:
    (line,) = folded(chain(*map(frame, names))).splitlines()
    path, _, samples = line.rpartition(" ")
    assert (path.count(";"), samples) == (len(names) - 1, "3")


def test_speedscope_reads_hostile_names_as_one_path(
    hostile: Any, importers: Path, tmp_path: Path
) -> None:
    file = tmp_path / "hostile.collapsedstack.txt"
    file.write_text(folded(chain(*map(frame, hostile.texts))))
    result = subprocess.run(
        ["node", str(SCRIPT), str(importers), str(file)], capture_output=True, text=True, timeout=60
    )
    profile = json.loads(result.stdout)["profiles"][0]
    assert (profile["total"], len(profile["frames"])) == (3, len(hostile.texts))
    assert "<script>alert(1)</script>" in profile["frames"]
