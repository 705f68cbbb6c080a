"""The application under a pilot: keys, and what stands on the terminal after them."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from textual.pilot import Pilot

from necroscope.views.tui.canvas import Canvas
from necroscope.views.tui.screen import CoreOrder, Position
from necroscope.views.tui.top_app import TopApp

S = 1_000_000_000


def drive(
    node: Any,
    script: Callable[[TopApp, Pilot[None]], Awaitable[None]],
    size: tuple[int, int] = (80, 24),
) -> TopApp:
    """Run the application without a terminal and without its clock: it draws on keys only."""
    app = TopApp(node, "node-7", period_s=0, monotonic_ns=lambda: 0)

    async def run() -> None:
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await script(app, pilot)

    asyncio.run(run())
    return app


def terminal(app: TopApp) -> list[str]:
    """What the widget hands to the terminal, line by line."""
    canvas = app.query_one(Canvas)
    return [canvas.render_line(y).text for y in range(canvas.size.height)]


def test_the_page_fills_the_terminal_and_follows_its_size(node_of: Callable[..., Any]) -> None:
    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        assert terminal(app)[0].startswith(" necroscope node-7 live 10:14:20 UTC")
        await pilot.resize_terminal(200, 60)
        await pilot.pause()
        assert "BUSY BY SECOND" in terminal(app)[3]

    drive(node_of(2), script)


def test_s_goes_through_the_orders(node_of: Callable[..., Any]) -> None:
    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        seen = []
        for _ in range(4):
            await pilot.press("s")
            assert app.shown
            seen.append(app.shown.sort)
            assert f"sort: {app.shown.sort.value}" in terminal(app)[-1]
        assert seen == [CoreOrder.BUSY, CoreOrder.SYSTEM, CoreOrder.DELAY, CoreOrder.CPU]

    drive(node_of(2), script)


def test_space_freezes_while_rows_come_and_follows_again(node_of: Callable[..., Any]) -> None:
    node = node_of(2)

    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press("space")
        node.core(65, 0)
        app.redraw()
        assert " FROZEN  10:14:20 UTC, 5 s back" in terminal(app)[0]
        await pilot.press("space")
        assert "live 10:14:25 UTC" in terminal(app)[0]

    drive(node, script)


def test_arrows_look_back_by_seconds_and_minutes_and_stop_at_the_oldest(
    node_of: Callable[..., Any],
) -> None:
    node = node_of(2, seconds=150)

    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        async def back_after(*keys: str) -> int:
            await pilot.press(*keys)
            assert app.shown
            return app.shown.back_ns // S

        assert await back_after("left", "left", "left") == 3
        assert await back_after("right") == 2
        assert await back_after("shift+left") == 62
        assert await back_after("left_square_bracket", "left_square_bracket") == 149
        assert "the oldest kept" in terminal(app)[0]
        assert await back_after("right_square_bracket") == 89
        assert await back_after("g") == 149
        assert await back_after("G") == 0
        assert app.look.position is Position.LIVE
        assert await back_after("left") == 1
        assert await back_after("right") == 0
        assert app.look.position is Position.LIVE

    drive(node, script, (120, 24))


def test_enter_opens_the_core_in_hand_and_escape_closes_it(node_of: Callable[..., Any]) -> None:
    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press("down", "down", "enter")
        assert any(line.startswith(" CORE 1 ") for line in terminal(app))
        await pilot.press("up")
        assert any(line.startswith(" CORE 0 ") for line in terminal(app))
        await pilot.press("escape")
        assert any(line.startswith("▸   0 ") for line in terminal(app))
        await pilot.press("a")
        assert any(line.startswith(" CORE 0 ") for line in terminal(app))
        await pilot.press("left")
        assert "LOOKING BACK" in terminal(app)[0]

    drive(node_of(2), script)


def test_help_opens_and_any_key_only_closes_it(node_of: Callable[..., Any]) -> None:
    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        for key in ("space", "x", "question_mark"):
            await pilot.press("question_mark")
            assert terminal(app)[0].startswith(" KEYS")
            await pilot.press(key)
            assert "live" in terminal(app)[0]

    drive(node_of(2), script)


def test_q_quits(node_of: Callable[..., Any]) -> None:
    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        assert app.is_running
        await pilot.press("q")

    assert drive(node_of(2), script).return_code == 0


def test_hostile_names_are_neither_markup_nor_commands_to_the_terminal(node: Any) -> None:
    node.core(1, 0, user=1.0)
    node.sample(1, 0, "[bold]x[/]", 7, user="[@click=quit]f[/]", cgroup="/\x1b[2J")
    node.event(1, "nic_reset", "[red]\x1b]0;pwned\x07")

    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        text = "\n".join(terminal(app))
        for part in (
            "[bold]x[/] 7",
            "[.] [@click=quit]f[/]",
            "/\\x1b[2J",
            "[red]\\x1b]0;pwned\\x07",
        ):
            assert part in text
        assert "\x1b" not in text
        assert "\x07" not in text

    drive(node, script)


def test_a_redraw_that_changes_nothing_repaints_nothing(
    node_of: Callable[..., Any], monkeypatch: Any
) -> None:
    node = node_of(2)

    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        repainted: list[Any] = []
        monkeypatch.setattr(
            Canvas, "refresh", lambda self, *regions, **_: repainted.extend(regions)
        )
        app.redraw()
        assert repainted == []
        node.status_text = "0 Hz"
        app.redraw()
        assert [region.y for region in repainted] == [0]

    drive(node, script)


def test_a_recorder_without_a_row_is_waited_for(node: Any) -> None:
    async def script(app: TopApp, pilot: Pilot[None]) -> None:
        await pilot.press("left", "space", "enter", "down", "s")
        assert "waiting for the first tick" in terminal(app)[0]
        node.core(1, 0, user=1.0)
        app.redraw()
        assert "live 10:13:21 UTC" in terminal(app)[0]

    drive(node, script)


def test_silence_is_measured_by_a_clock_that_nobody_steps(node_of: Callable[..., Any]) -> None:
    node = node_of(2)
    now_ns = 0
    app = TopApp(node, period_s=0, monotonic_ns=lambda: now_ns)

    async def run() -> None:
        nonlocal now_ns
        async with app.run_test(size=(80, 24)) as pilot:
            await pilot.pause()
            now_ns = 9 * S
            app.redraw()
            assert "NOTHING NEW for 9 s" in terminal(app)[0]
            node.core(61, 0)
            app.redraw()
            assert "live 10:14:21 UTC" in terminal(app)[0]

    asyncio.run(run())
