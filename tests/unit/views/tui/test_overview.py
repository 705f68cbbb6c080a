"""The first page on small and large terminals, with few and many cores."""

from collections.abc import Callable
from typing import Any

import pytest

from necroscope.views.format import cells
from necroscope.views.tui.help_page import draw
from necroscope.views.tui.line import text_of
from necroscope.views.tui.look import Look
from necroscope.views.tui.screen import CoreOrder
from necroscope.views.tui.top_model import build

S = 1_000_000_000


def page(
    node: Any, width: int, height: int, look: Look | None = None, silent_ns: int = 0
) -> list[str]:
    return [
        text_of(line)
        for line in draw(build(node, look or Look(), silent_ns), "node-7", width, height)
    ]


@pytest.mark.parametrize("size", [(80, 24), (200, 60), (120, 30), (40, 10), (20, 4), (300, 100)])
@pytest.mark.parametrize("cores", [1, 2, 14, 15, 128, 600])
def test_every_page_fills_the_terminal_exactly(
    cores: int, size: tuple[int, int], node_of: Callable[..., Any]
) -> None:
    width, height = size
    node = node_of(cores, seconds=5)
    node.notice_texts = ["stacks: cannot sample all CPUs", "softirq delay: no BPF"]
    for look in (Look(), Look(cpu=cores - 1), Look(cpu=0, is_detail=True)):
        for is_help in (False, True):
            lines = draw(build(node, look), "node-7", width, height, is_help=is_help)
            assert [cells(text_of(line)) for line in lines] == [width] * height


def test_two_cores_on_a_small_terminal(node_of: Callable[..., Any]) -> None:
    assert [line.rstrip() for line in page(node_of(2), 80, 24)[:13]] == [
        " necroscope node-7 live 10:14:20 UTC                   97 Hz, 0 lost, 0.4 % CPU",
        " Sys 49% Irq 0% softirQ 0% sTeal 0% user 6% nice 0% wait 0% .idle 45%",
        " zombies 68,680 +120/min  delay 1.24 s+ net_rx cpu 1  psi cpu 12% mem 0% io –",
        " CPU▾ BUSY  MODES        DELAY   ON IT                   IN FUNCTION",
        "    0  10%  u...........   84 µs python3 4121       100% [.] _PyEval_EvalFrameD…",
        "            ▁▁▁▁▁▁▁▁▁▁▁▁         /kubepods/burstable/pod9f2/ray-worker",
        "",
        "",
        "    1 100%  SSSSSSSSSSSS 1.24 s+ kubelet 1872        96% [k] memcg_page_state",
        "            ▇▇▇▇▇▇▇█████         /system.slice/kubelet.service",
        "                                 containerd 990       4% [k] do_idle",
        "",
        " EVENTS",
    ]


def test_two_cores_on_a_large_terminal_have_cgroup_and_past_beside_them(
    node_of: Callable[..., Any],
) -> None:
    hot = next(line for line in page(node_of(2), 200, 60) if line.startswith("    1 "))
    for part in (
        "1.24 s+ net_rx",
        "▇▇▇▇▇█████",
        "kubelet 1872",
        "/system.slice/kubelet.service",
        "[k] memcg_page_state",
    ):
        assert part in hot


def test_many_cores_on_a_small_terminal_are_a_map_of_all_and_a_list_of_the_hottest(
    node_of: Callable[..., Any],
) -> None:
    lines = page(node_of(128), 80, 24)
    assert [line[:4] for line in lines[3:7]] == ["   0", "  32", "  64", "  96"]
    assert lines[3].startswith("   0  u▁u▇u▁u▁u▁u▁u▁u▁ u▁u▇")
    assert lines[6].rstrip().endswith("S!")
    assert "118 more" in lines[7]
    assert lines[8].startswith("  127 100%  SSSSSSSSSSSS 1.24 s+ kubelet 1872")


def test_many_cores_on_a_large_terminal_have_a_cell_with_a_bar_each(
    node_of: Callable[..., Any],
) -> None:
    lines = page(node_of(128), 200, 60)
    assert lines[3].startswith("   0  10% u.............   16  10% u....")
    assert lines[18].rstrip().endswith("127 100%!SSSSSSSSSSSSSS")


def test_a_selected_core_below_the_end_of_the_list_is_scrolled_to(
    node_of: Callable[..., Any],
) -> None:
    assert any(
        line.startswith("▸  64 ")
        for line in page(node_of(128), 80, 24, Look(sort=CoreOrder.CPU, cpu=64))
    )


def test_a_map_that_has_no_room_for_all_shows_the_selected_part(
    node_of: Callable[..., Any],
) -> None:
    assert any(
        line.startswith(" 576 ") for line in page(node_of(600, seconds=2), 80, 24, Look(cpu=599))
    )


def test_frozen_and_looking_back_say_so_with_time_and_distance(node_of: Callable[..., Any]) -> None:
    node = node_of(2)
    frozen = Look().freeze(node.span())
    node.core(67, 0)
    assert " FROZEN  10:14:20 UTC, 7 s back" in page(node, 80, 24, frozen)[0]
    assert (
        " LOOKING BACK  10:13:42 UTC, 45 s back"
        in page(node, 80, 24, Look().move(-45 * S, node.span()))[0]
    )
    assert (
        "10:13:21 UTC, 1 min 6 s back, the oldest kept"
        in page(node, 120, 24, Look().oldest(node.span()))[0]
    )


def test_a_recorder_that_fell_silent_is_not_called_live(node_of: Callable[..., Any]) -> None:
    assert " NOTHING NEW for 7 s " in page(node_of(2), 80, 24, silent_ns=7 * S + 1)[0]
    assert " live " in page(node_of(2), 80, 24, silent_ns=2 * S)[0]


def test_before_the_first_tick_the_page_waits(node: Any) -> None:
    lines = page(node, 80, 24)
    assert "waiting for the first tick" in lines[0]
    assert " Sys – Irq –" in lines[1]
    assert lines[2].startswith(" zombies –  delay –  psi cpu – mem – io –")


def test_what_is_not_measured_is_a_dash_and_what_did_not_happen_is_a_dot(node: Any) -> None:
    for cpu in (0, 1):
        node.core(1, cpu, user=0.5)
    assert [line[25:34] for line in page(node, 80, 24)[4:12:4]] == ["      – –"] * 2
    node.delay(1, 0, 5_000)
    node.sample(1, 0, "x")
    assert [line[25:34] for line in page(node, 80, 24)[4:12:4]] == ["   5 µs x", "      · ·"]


def test_a_gap_of_a_core_is_shown_in_list_and_maps(node_of: Callable[..., Any]) -> None:
    for cores, size, gap in (
        (2, (80, 24), "    0    –  gap: cpu 0 went offline"),
        (128, (80, 24), "   0  ––u▇"),
        (128, (200, 60), "   0    – gap"),
    ):
        node = node_of(cores)
        node.tables["cores"] = [
            row for row in node.tables["cores"] if (row[0], row[1]) != (node.at(60), 0)
        ]
        node.gap(59, "cores", "cpu 0 went offline", cpu=0)
        assert any(line.startswith(gap) for line in page(node, *size))


def test_notices_are_one_line_and_the_rest_is_counted(node_of: Callable[..., Any]) -> None:
    node = node_of(2)
    node.notice_texts = [
        "stacks: cannot sample all CPUs: perf_event_paranoid is 2 and CAP_PERFMON is missing",
        "b",
        "c",
    ]
    line = page(node, 80, 24)[3]
    assert line.startswith(" ! stacks: cannot sample all CPUs: perf_event_paranoid is 2")
    assert line.endswith(" (+2 more: ?) ")
    assert page(node, 120, 60)[4:6] == [" ! b".ljust(120), " ! c".ljust(120)]
