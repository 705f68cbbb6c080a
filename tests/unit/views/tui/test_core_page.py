"""The page of one core, and the help."""

from collections.abc import Callable
from typing import Any

from necroscope.views.tui.help_page import draw
from necroscope.views.tui.line import text_of
from necroscope.views.tui.look import Look
from necroscope.views.tui.top_model import build


def page(node: Any, cpu: int, width: int = 80, height: int = 24) -> list[str]:
    return [
        text_of(line).rstrip()
        for line in draw(build(node, Look(cpu=cpu, is_detail=True)), "", width, height)
    ]


def test_each_mode_is_a_line_with_its_letter_share_and_past(node_of: Callable[..., Any]) -> None:
    lines = page(node_of(2), 1)
    assert lines[3] == " CORE 1  share of each second, the last 63"
    assert lines[4] == " S system    98% –––" + "_" * 55 + "█████"
    assert lines[8] == " u user       2% –––" + "▇" * 55 + "▁▁▁▁▁"
    assert lines[12] == " delay    1.24 s " + "–" * 62 + "█"


def test_tasks_and_functions_stand_side_by_side(node_of: Callable[..., Any]) -> None:
    lines = page(node_of(2), 1)
    start = next(
        place for place, line in enumerate(lines) if line.startswith(" TASKS, 94 samples in 10 s")
    )
    assert lines[start + 1] == "  96% kubelet 1872           …t.service   96% [k] memcg_page_state"


def test_a_core_without_samples_says_so(node_of: Callable[..., Any]) -> None:
    node = node_of(2)
    node.samples = []
    assert " no sample of this core" in page(node, 1)


def test_a_captured_task_names_the_file_it_was_reading(node_of: Callable[..., Any]) -> None:
    node = node_of(2)
    called = (
        "/usr/bin/kubelet",
        None,
        "R",
        "other",
        0,
        "0-1",
        "read",
        "/sys/fs/cgroup/memory/memory.stat",
        None,
        None,
    )
    node.add("tasks", (node.at(58), 1, "saturated", 1872, 1890, "kubelet", 95, *called))
    expected = (
        " 10:14:18 saturated: kubelet 1872 (/usr/bin/kubelet) in read of"
        " /sys/fs/cgroup/memory/memory.stat"
    )
    assert expected in page(node, 1, 120)


def test_help_fits_the_smallest_terminal_and_holds_notices_in_full(node: Any) -> None:
    node.notice_texts = ["stacks: " + "x" * 100]
    lines = [text_of(line) for line in draw(build(node, Look()), "", 80, 30, is_help=True)]
    assert not [line for line in lines if "…" in line and "means cut" not in line]
    assert sum(line.count("x") for line in lines[-9:]) == 100
