"""The fleet's page as a person uses it: a real Chromium, a real collector, a small lake in which a
zone is only a proxy.
"""

import time
from collections.abc import Iterator

import pytest
from tests.drawn_fleet import CAUSE, JOB, UNIT, drawn_fleet
from tests.integration.drawn_incident import HOSTILE
from tests.integration.opened_page import changed, collect_errors, words
from tests.served_collector import served

from necroscope.cli.view import recording_of
from necroscope.fleet.collector.app import create_fleet_app
from necroscope.fleet.tokens import Grant, Tokens, digest_of
from necroscope.views.web.export import STATIC

pytestmark = pytest.mark.skipif(
    not (STATIC / "fleet.html").exists(), reason="the page was not built (scripts/setup builds it)"
)
WIDE = {"width": 1440, "height": 1000}
SOON_MS = 10_000
TOKEN = "necro_reader"


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    lake = drawn_fleet(tmp_path_factory.mktemp("fleet") / "lake", time.time_ns())
    tokens = Tokens({digest_of(TOKEN): Grant("eu-1", "read")})
    with served(create_fleet_app(lake, tokens, recording_of)) as client:
        yield str(client.base_url)


@pytest.fixture(scope="module")
def context(browser) -> Iterator:
    opened = browser.new_context(viewport=WIDE, color_scheme="dark")
    opened.set_default_timeout(SOON_MS)
    yield opened
    opened.close()


@pytest.fixture
def page(context, address: str) -> Iterator:
    """The page, opened by a link with a token; a script error or a refused resource fails the
    test.
    """
    page = context.new_page()
    messages = collect_errors(page)
    page.goto(f"{address}/#token={TOKEN}&since=-48h")
    page.wait_for_selector("#why")
    yield page
    page.close()
    # A question that cannot be answered is a 400; the page shows why.
    assert [text for text in messages if "status of 400" not in text] == []


def opened(page, tab: str, shown: str) -> str:
    """The text of a tab that was opened."""
    page.click(f"#tab-{tab}")
    page.wait_for_selector(shown)
    return page.locator("[role=tabpanel]").inner_text()


def test_the_fact_is_named_and_the_zone_is_only_a_proxy(page) -> None:
    text = page.locator("#why").inner_text()
    assert f"unit_file {UNIT} is enabled goes with nic_reset" in text
    assert "16 of 19 affected" in text
    assert "0 of 41 affected" in text
    zone = page.locator("details[data-relation=proxy]", has_text="zone is a").first
    assert zone.get_attribute("open") is not None
    found = zone.inner_text()
    assert "only a proxy" in found
    for name in ("gpu-03", "gpu-09", "gpu-16", "gpu-27", "gpu-45"):
        assert name in found, "the nodes that decide are named"
    assert "token" not in page.url
    assert page.evaluate("document.cookie") == ""


def test_without_a_token_nothing_is_shown(browser, address: str) -> None:
    context = browser.new_context()
    try:
        stranger = context.new_page()
        stranger.goto(address)
        stranger.wait_for_selector("#sign-in", timeout=SOON_MS)
        stranger.fill("input[name=token]", "wrong")
        stranger.click("#sign-in button")
        stranger.wait_for_selector("text=the token is wrong")
        stranger.fill("input[name=token]", TOKEN)
        stranger.click("#sign-in button")
        stranger.wait_for_selector("#tab-why", timeout=SOON_MS)
        stranger.reload()
        stranger.wait_for_selector("#tab-why", timeout=SOON_MS)
        stranger.click("#sign-out")
        stranger.wait_for_selector("#sign-in", timeout=SOON_MS)
    finally:
        context.close()


def test_bars_are_stacked_by_the_chosen_label_and_narrowed_by_a_drag(page) -> None:
    names = page.locator(".stack-names")
    names.locator("button").nth(2).wait_for()
    assert [part.split()[0] for part in names.locator("button").all_inner_texts()] == [
        "a",
        "b",
        "c",
    ]
    assert changed(page, lambda: page.select_option("#by", "image"))["by"] == "image"
    page.wait_for_function(
        "() => document.querySelector('.stack-names').textContent.includes('v2')"
    )
    box = page.locator(".bars").bounding_box()
    y = box["y"] + 40

    def drag() -> None:
        page.mouse.move(box["x"] + box["width"] * 0.5, y)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.7, y)
        page.mouse.move(box["x"] + box["width"] * 0.8, y)
        page.mouse.up()

    state = changed(page, drag)
    assert state["since"] < state["until"]
    assert (
        changed(page, lambda: page.locator(".stack-names button", has_text="v2").click())["where"]
        == "image=v2"
    )
    page.wait_for_function("() => document.querySelectorAll('.stack-names button').length === 1")


def test_nodes_sort_by_any_column_and_are_chosen_by_their_labels(page) -> None:
    assert "gpu-00" in opened(page, "nodes", "#nodes tbody tr")
    assert changed(page, lambda: page.click("#nodes th button:has-text('node')"))["sort"] == "node"
    assert page.locator("#nodes tbody tr").first.inner_text().startswith("✕ gpu-00")
    assert changed(page, lambda: page.click("#nodes th button:has-text('node')"))["sort"] == "-node"
    page.wait_for_function(
        "() => document.querySelector('#nodes tbody tr').textContent.startsWith('gpu-59')"
    )
    page.wait_for_selector("#nodes :text('100 % system, core 1')")
    # Names from the machines are text, also where they choose nodes.
    changed(page, page.locator("#nodes button.label", has_text="onerror").first.click)
    page.wait_for_function("() => document.querySelectorAll('#nodes tbody tr').length === 1")
    assert page.locator("#where").input_value() == f"note='{HOSTILE}'"
    assert page.locator("img").count() == 0
    assert page.title() == "fleet · necroscope"


def test_an_incident_opens_its_evidence_in_the_time_machine(page) -> None:
    text = opened(page, "incidents", "#incidents tbody tr")
    assert CAUSE in text
    assert UNIT in text
    assert HOSTILE in text
    state = changed(page, page.locator("#incidents td button.link").first.click)
    assert state["incident"].startswith("eu-1/gpu-00/")
    page.wait_for_selector("#verdict-of :text('What to do')")
    assert "restart the agent" in page.locator("#verdict-of").inner_text()
    assert page.locator("#incidents a").count() == 1
    with page.context.expect_page() as opening:
        page.click("#incidents a")
    machine = opening.value
    machine.wait_for_selector("#verdict :text('irq-core-collision')", timeout=SOON_MS)
    assert machine.title() == "drawn-node · necroscope"
    assert "/evidence/eu-1/" in machine.url
    machine.locator("#verdict button[data-lane=events]").first.click()
    machine.wait_for_selector("#flame canvas", timeout=SOON_MS)
    with machine.context.expect_page() as deep:
        machine.click("#deep")
    deep.value.wait_for_selector("text=Time Order", timeout=SOON_MS)


def test_two_cohorts_are_compared(page) -> None:
    text = opened(page, "compare", "#differences tbody tr")
    assert page.locator("#differences tbody tr").first.inner_text().split()[:2] == [
        "unit_file",
        UNIT,
    ]
    assert "disabled" in text
    page.fill("#cohort-a", "node=gpu-00")
    assert changed(page, lambda: page.keyboard.press("Enter"))["a"] == "node=gpu-00"
    page.wait_for_selector("#differences thead :text('1 node')")
    page.fill("#cohort-a", "zone=")
    page.keyboard.press("Enter")
    page.wait_for_selector("[role=alert]:has-text('cannot read')")


def test_the_flame_graph_of_the_affected_differs_from_the_others(page) -> None:
    opened(page, "flame", "#flame canvas")
    note = page.locator("#flame-note").inner_text()
    assert "of 16 nodes against" in note
    page.fill("#search", "timer_list_show")
    page.wait_for_function(
        "() => document.querySelector('#flame-note').textContent.includes('timer_list_show')"
    )
    assert changed(page, lambda: page.click("#alone"))["alone"] == "1"
    page.wait_for_function(
        "() => !document.querySelector('#flame-note').textContent.includes('against')"
    )


def test_a_change_is_judged_by_before_and_after(page) -> None:
    page.click("#tab-change")
    page.fill("#fact", "sysctl:kernel.watchdog=0")
    assert changed(page, lambda: page.keyboard.press("Enter"))["fact"] == "sysctl:kernel.watchdog=0"
    page.wait_for_selector("#change h2:has-text('nic_reset on 3 nodes')")
    assert "other nodes, same time 57" in page.locator("#change").inner_text()
    page.fill("#fact", "nonsense:x=1")
    page.keyboard.press("Enter")
    page.wait_for_selector("[role=alert]:has-text('no node has pushed')")


def test_a_jobs_story_leads_from_its_line_to_the_core(page) -> None:
    text = opened(page, "jobs", "#job-list")
    assert "1 jobs: 1 failed" in text
    assert "1 by the machine" in text
    found = changed(page, lambda: page.click(f"#job-list button.link:has-text('{JOB}')"))
    assert found["job"].startswith(f"{JOB}@")
    page.wait_for_selector("#story")
    story = page.locator("#story").inner_text()
    assert "rank 0 on gpu-00 stopped first" in story
    assert CAUSE in story
    assert f"Act on: unit {UNIT}" in story
    assert page.locator("#chain tbody tr").count() >= 4


def test_back_and_forward_restore_what_was_chosen(page) -> None:
    first = changed(page, lambda: page.click("#tab-nodes"))
    second = changed(page, lambda: page.select_option("#about", f"cause={CAUSE}"))
    page.go_back()
    page.wait_for_function("() => document.querySelector('#about').value === 'event=nic_reset'")
    assert words(page) == first
    page.go_forward()
    page.wait_for_function(
        "cause => document.querySelector('#about').value === cause", arg=f"cause={CAUSE}"
    )
    assert words(page) == second


def test_everything_can_be_done_with_the_keyboard(page) -> None:
    page.keyboard.press("?")
    page.wait_for_selector("#help")
    page.keyboard.press("Escape")
    page.wait_for_selector("#help", state="hidden")
    assert changed(page, lambda: page.keyboard.press("3"))["tab"] == "nodes"
    assert changed(page, lambda: page.keyboard.press("-"))["since"] != "-48h"
    page.keyboard.press("n")
    page.keyboard.type("zone=b")
    assert changed(page, lambda: page.keyboard.press("Enter"))["where"] == "zone=b"
    page.wait_for_function("() => document.querySelectorAll('#nodes tbody tr').length === 20")
    look = page.evaluate("document.documentElement.dataset.theme")
    page.keyboard.press("t")
    assert page.evaluate("document.documentElement.dataset.theme") != look


def test_light_small_and_large_screens_have_no_sideways_scrolling(browser, address: str) -> None:
    for width, height, scheme in ((1280, 720, "light"), (3840, 2160, "dark")):
        context = browser.new_context(
            viewport={"width": width, "height": height}, color_scheme=scheme
        )
        try:
            page = context.new_page()
            page.goto(f"{address}/#token={TOKEN}&since=-48h")
            for tab, shown in (
                ("why", "#why"),
                ("incidents", "#incidents"),
                ("nodes", "#nodes"),
                ("compare", "#differences"),
            ):
                page.click(f"#tab-{tab}")
                page.wait_for_selector(shown, timeout=SOON_MS)
                assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), (
                    width,
                    tab,
                )
            assert page.evaluate("document.documentElement.dataset.theme") == scheme
        finally:
            context.close()
