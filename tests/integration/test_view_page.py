"""The time machine as a person uses it: a real Chromium, the real server, a recording with one
incident.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.drawn_node import at
from tests.integration.conftest import served
from tests.integration.drawn_incident import HOSTILE, drawn_incident, write
from tests.integration.opened_page import changed, collect_errors, words

WIDE = {"width": 1440, "height": 1000}
SOON_MS = 20_000
CORES_REST_MS = 120


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(write(tmp_path_factory.mktemp("view") / "r", drawn_incident())) as found:
        yield found


@pytest.fixture
def page(browser, address: str) -> Iterator:
    """The page, opened; a script error or a refused resource fails the test."""
    context = browser.new_context(viewport=WIDE, color_scheme="dark", accept_downloads=True)
    page = context.new_page()
    page.set_default_timeout(SOON_MS)
    messages = collect_errors(page)
    page.goto(address)
    page.wait_for_selector("#flame canvas")
    yield page
    context.close()
    assert messages == []


def window_s(state: dict[str, str]) -> tuple[float, float]:
    start, end = (int(part) / 1e6 - at(0) / 1e9 for part in state["window"].split("-"))
    return start, end


def samples(page) -> int:
    return int(page.locator("#lane-flame .note").inner_text().split(" samples")[0].replace(",", ""))


def brush(page, lane: str, start: float, end: float, modifier: str | None = None) -> None:
    """A drag over a lane between two shares of its width."""
    box = page.locator(f"#lane-{lane} .surface").bounding_box()
    y = box["y"] + box["height"] / 2
    if modifier:
        page.keyboard.down(modifier)
    page.mouse.move(box["x"] + box["width"] * start, y)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * (start + end) / 2, y)
    page.mouse.move(box["x"] + box["width"] * end, y)
    page.mouse.up()
    if modifier:
        page.keyboard.up(modifier)


def test_the_verdict_is_read_first(page) -> None:
    verdict = page.locator("#verdict")
    text = verdict.inner_text()
    assert "collector" in text
    assert "irq-core-collision" in text
    assert "network device reset of eth0" in text
    assert "core 1" in text
    assert "What to do" in text
    assert page.title() == "drawn-node · necroscope"


def test_evidence_moves_the_page_to_its_place(page) -> None:
    link = page.locator("#verdict button[data-lane=events]").first
    state = changed(page, link.click)
    start, end = window_s(state)
    assert start < 20.5 < end
    assert state["core"] == "1"
    page.wait_for_selector("#lane-events.lit")


def test_a_brush_chooses_a_window_for_all_lanes(page) -> None:
    state = changed(page, lambda: brush(page, "cores", 0.25, 0.35))
    start, end = window_s(state)
    assert (start, end) == (pytest.approx(15, abs=0.2), pytest.approx(21, abs=0.2))
    for lane in ("events", "cores", "cgroups"):
        page.wait_for_selector(f"#lane-{lane} .band.window")
    page.wait_for_function(
        "() => document.querySelector('#lane-flame h2').textContent.includes('core 1')"
    )
    assert samples(page) in range(295, 305)


def test_the_counter_that_moved_most_is_shown_and_another_can_be_chosen(page) -> None:
    lane = page.locator("#lane-counters")
    lane.locator("canvas").wait_for()
    choice = lane.locator("select")
    assert choice.input_value() == "memory.pgfault"
    assert "90k/s" in lane.inner_text()
    choice.select_option("network.tcp_retransmits")
    page.wait_for_function(
        "() => document.querySelector('#lane-counters').innerText.includes('700/s')"
    )
    assert "segments sent again" in lane.inner_text()


def test_lanes_wait_for_a_wheel_to_rest_but_not_after_a_brush(page) -> None:
    page.evaluate("""() => {
      const set = window.setTimeout;
      window.waits = [];
      window.setTimeout = (call, wait_ms, ...rest) => { window.waits.push(wait_ms); return set(call, wait_ms, ...rest); };
    }""")
    # So short that the view goes there, and the lanes ask again.
    with page.expect_response(lambda answer: "api/cores" in answer.url):
        brush(page, "cores", 0.5, 0.504)
    assert CORES_REST_MS not in page.evaluate("window.waits")
    page.keyboard.down("Shift")
    with page.expect_response(lambda answer: "api/cores" in answer.url):
        page.mouse.wheel(0, 200)
    page.keyboard.up("Shift")
    assert CORES_REST_MS in page.evaluate("window.waits")


def test_another_core_shows_who_ran_there(page) -> None:
    changed(page, lambda: page.select_option("#core", "0"))
    changed(page, lambda: brush(page, "events", 0.17, 0.30))
    page.wait_for_function(
        "() => document.querySelector('#lane-flame h2').textContent.includes('core 0')"
    )
    page.fill("#search", "multiply")
    page.wait_for_function(
        "() => document.querySelector('#lane-flame .note').textContent.includes('in 100.0 %')"
    )
    page.wait_for_function("() => location.hash.includes('search=multiply')")


def test_the_graph_can_be_of_one_process(page) -> None:
    changed(page, lambda: page.select_option("#core", "all"))
    changed(page, lambda: brush(page, "cores", 0.17, 0.30))
    page.keyboard.press("o")
    page.wait_for_selector("#processes option[value='worker (600)']", state="attached")
    page.fill("#process", "worker (600)")
    assert changed(page, lambda: page.keyboard.press("Enter"))["pid"] == "600"
    page.wait_for_function(
        "() => document.querySelector('#lane-flame h2').textContent.includes('pid 600')"
    )
    page.fill("#search", "multiply")
    page.wait_for_function(
        "() => document.querySelector('#lane-flame .note').textContent.includes('in 100.0 %')"
    )
    page.fill("#process", "collector")
    state = changed(page, lambda: page.keyboard.press("Enter"))
    assert (state.get("pid"), state["comm"]) == (None, "collector")


def test_a_click_into_the_core_map_looks_at_that_core(page) -> None:
    box = page.locator("#lane-cores .surface").bounding_box()
    row = box["height"] / 4
    state = changed(
        page, lambda: page.mouse.click(box["x"] + box["width"] * 0.5, box["y"] + row * 2.5)
    )
    assert state["core"] == "2"


def test_a_differential_shows_what_grew(page) -> None:
    changed(page, lambda: page.click("#compare"))
    page.wait_for_selector("#lane-flame .key:has-text('more than in the baseline')")
    page.wait_for_selector("#lane-cores .band.baseline")
    state = changed(page, lambda: brush(page, "cores", 0.6, 0.7, "Shift"))
    assert "baseline" in state
    state = changed(page, lambda: page.keyboard.press("b"))
    assert "baseline" not in state


def test_back_and_forward_restore_what_was_chosen(page) -> None:
    first = changed(page, lambda: brush(page, "cores", 0.2, 0.3))
    second = changed(page, lambda: page.select_option("#mode", "delay"))
    page.go_back()
    page.wait_for_function("() => document.querySelector('#mode').value !== 'delay'")
    assert words(page) == first
    page.go_forward()
    page.wait_for_function("() => document.querySelector('#mode').value === 'delay'")
    assert words(page) == second


def test_a_link_shows_a_colleague_the_same(page, browser) -> None:
    changed(page, lambda: brush(page, "cores", 0.1, 0.2))
    changed(page, lambda: page.select_option("#core", "2"))
    colleague = page.context.new_page()
    colleague.goto(page.url)
    colleague.wait_for_selector("#flame canvas")
    assert (
        colleague.locator("#lane-flame h2").inner_text()
        == page.locator("#lane-flame h2").inner_text()
    )


def test_the_zoom_of_the_flame_graph_is_in_the_link_and_comes_back(page) -> None:
    changed(page, lambda: page.select_option("#core", "all"))
    changed(page, lambda: brush(page, "cores", 0.17, 0.30))
    page.wait_for_selector("#lane-flame .spinner", state="hidden")
    nodes = page.get_attribute("#flame", "data-nodes")
    changed(page, lambda: page.select_option("#group", "process"))
    page.wait_for_function(
        "before => document.querySelector('#flame').dataset.nodes !== before", arg=nodes
    )
    zoomed = changed(page, lambda: page.locator("#flame").click(position={"x": 30, "y": 5}))
    start, end = (float(share) for share in zoomed["zoom"].split("-"))
    assert 0 <= start < end < 1
    colleague = page.context.new_page()
    colleague.goto(page.url)
    colleague.wait_for_selector("#lane-flame button:has-text('all')")
    assert words(colleague)["zoom"] == zoomed["zoom"]
    assert "zoom" not in changed(page, lambda: brush(page, "cores", 0.4, 0.5))
    page.wait_for_selector("#lane-flame .gutter button", state="hidden")
    page.go_back()
    page.wait_for_selector("#lane-flame .gutter button")
    assert words(page) == zoomed


def test_everything_can_be_done_with_the_keyboard(page) -> None:
    page.keyboard.press("?")
    page.wait_for_selector("#help")
    page.keyboard.press("Escape")
    page.wait_for_selector("#help", state="hidden")
    assert changed(page, lambda: page.keyboard.press("m"))["mode"] == "busy"
    assert changed(page, lambda: page.keyboard.press("j"))["core"] == "2"
    assert "core" not in changed(page, lambda: page.keyboard.press("a"))
    changed(page, lambda: page.keyboard.press("]"))
    changed(page, lambda: page.keyboard.press("Shift+ArrowRight"))
    changed(page, lambda: page.keyboard.press("+"))
    page.keyboard.press("/")
    page.keyboard.type("main")
    page.wait_for_function(
        "() => document.querySelector('#lane-flame .note').textContent.includes('“main”')"
    )
    page.keyboard.press("Escape")
    page.keyboard.press("g")
    page.keyboard.press("ArrowDown")
    page.wait_for_selector(".tip:has-text('main')")


def test_a_gap_is_drawn_as_a_gap(page) -> None:
    page.keyboard.press("0")
    page.wait_for_selector("#lane-cores .band.gap")
    box, gap = (
        page.locator("#lane-cores .surface").bounding_box(),
        page.locator("#lane-cores .band.gap").first.bounding_box(),
    )
    assert (gap["x"] - box["x"]) / box["width"] == pytest.approx(45 / 60, abs=0.01)


def test_hostile_names_are_text(page) -> None:
    page.select_option("#core", "all")
    page.select_option("#group", "name")
    page.wait_for_function(
        "() => document.querySelector('#lane-tasks').textContent.includes('onerror')"
    )
    assert page.locator("img").count() == 0
    button = page.locator("#lane-tasks button", has_text="onerror")
    changed(page, button.click)
    page.wait_for_function("() => document.querySelector('#process').value")
    assert page.locator("#process").input_value() == HOSTILE
    page.wait_for_function(
        "() => document.querySelector('#lane-flame h2').textContent.includes('onerror')"
    )
    assert page.title() == "drawn-node · necroscope"


def test_an_export_opens_offline_and_can_still_be_asked(page, browser, tmp_path: Path) -> None:
    changed(page, lambda: brush(page, "cores", 0.25, 0.35))
    title = page.locator("#lane-flame h2").inner_text()
    with page.expect_download() as download:
        page.click("#export")
    file = tmp_path / "export.html"
    download.value.save_as(file)
    assert file.stat().st_size < 3_000_000
    context = browser.new_context(viewport=WIDE, offline=True)
    try:
        offline, messages = context.new_page(), []
        offline.on("pageerror", lambda error: messages.append(str(error)))
        offline.on(
            "request",
            lambda request: (
                messages.append(request.url) if request.url.startswith("http") else None
            ),
        )
        offline.goto(file.as_uri())
        offline.wait_for_selector("#flame canvas", timeout=SOON_MS)
        assert offline.locator("#lane-flame h2").inner_text() == title
        assert "collector" in offline.locator("#verdict").inner_text()
        assert samples(offline) in range(295, 305)
        changed(offline, lambda: offline.select_option("#core", "2"))
        changed(offline, lambda: offline.click("#compare"))
        offline.wait_for_selector(
            "#lane-flame .key:has-text('more than in the baseline')", timeout=SOON_MS
        )
        assert messages == []
    finally:
        context.close()


def test_speedscope_shows_the_window(page) -> None:
    with page.context.expect_page() as opened:
        page.click("#deep")
    deep = opened.value
    refused: list[str] = []
    deep.on("pageerror", lambda error: refused.append(str(error)))
    deep.wait_for_selector("text=Time Order", timeout=SOON_MS)
    assert "necroscope" in deep.title()
    assert refused == []


def test_light_small_and_large_screens_have_no_sideways_scrolling(browser, address: str) -> None:
    for width, height, scheme in ((1280, 720, "light"), (3840, 2160, "dark")):
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme
        )
        try:
            page = context.new_page()
            page.goto(address)
            page.wait_for_selector("#flame canvas", timeout=SOON_MS)
            assert page.evaluate("document.documentElement.dataset.theme") == scheme
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        finally:
            context.close()


def test_the_browser_is_opened_by_a_file_that_lets_in_once(browser, tmp_path: Path) -> None:
    program, found = tmp_path / "browser", tmp_path / "told"
    program.write_text(f'#!/bin/sh\necho "$@" > {found}.part && mv {found}.part {found}\n')
    program.chmod(0o755)
    context = browser.new_context(viewport=WIDE)
    try:
        with served(write(tmp_path / "r", drawn_incident()), program) as address:
            page = context.new_page()
            page.goto(address.partition("?")[0])
            assert "the token is missing" in page.content()
            # The server answers only after the browser was started.
            file = found.read_text().strip()
            assert address.partition("token=")[2] not in file
            page.goto(file)
            page.wait_for_selector("#flame canvas", timeout=SOON_MS)
            assert "once" not in page.url
            other = browser.new_context().new_page()
            other.goto(file)
            other.wait_for_selector("text=used before", timeout=SOON_MS)
            other.context.close()
    finally:
        context.close()
