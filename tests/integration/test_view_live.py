"""The time machine over a recording that grows: it follows, unless somebody looks at something
else.
"""

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from tests.integration.conftest import RunningRecorder, served

# A browser and a recorder at once need both cores.
pytestmark = [pytest.mark.kernel, pytest.mark.root, pytest.mark.alone]
SOON_MS = 20_000
# What the page was told was recorded, and the end of the window that the flame graph is of.
RECORDED = "() => document.querySelector('.toolbar .faint').textContent"
TITLE = "() => document.querySelector('#lane-flame h2').textContent"
GREW = "before => document.querySelector('.toolbar .faint').textContent !== before"
MOVED = "before => document.querySelector('#lane-flame h2').textContent !== before"


@pytest.fixture
def growing(record: Callable[..., RunningRecorder]) -> Iterator[str]:
    recorder = record()
    recorder.wait_for_rows("cores", 8)
    with served(recorder.directory) as address:
        yield address


@pytest.fixture
def page(browser: Any, growing: str) -> Iterator[Any]:
    context = browser.new_context(viewport={"width": 1440, "height": 1000})
    page = context.new_page()
    page.set_default_timeout(SOON_MS)
    page.goto(growing)
    yield page
    context.close()


def test_new_seconds_come_on_the_screen_until_somebody_looks_elsewhere(page: Any) -> None:
    page.wait_for_selector(".live.on")
    page.wait_for_selector("#flame canvas")
    for _ in range(2):
        page.wait_for_function(MOVED, arg=page.evaluate(TITLE))
    drawn = page.evaluate("document.querySelector('#core-map').toDataURL()")
    page.wait_for_function(
        "before => document.querySelector('#core-map').toDataURL() !== before", arg=drawn
    )
    # The last second on the screen is one of the last that passed on this machine.
    shown = page.evaluate(TITLE).split(" – ")[1].split(" ")[0]
    recent = {time.strftime("%H:%M:%S", time.gmtime(time.time() - ago)) for ago in range(15)}
    assert shown[:8] in recent
    box = page.locator("#lane-cores .surface").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.3, box["y"] + 5)
    page.wait_for_selector(".live:not(.on)")
    stands_still(page)
    page.keyboard.press("f")
    page.wait_for_selector(".live.on")
    page.wait_for_function(MOVED, arg=page.evaluate(TITLE))


def test_a_link_to_a_window_does_not_move(page: Any) -> None:
    page.wait_for_selector("#flame canvas")
    box = page.locator("#lane-cores .surface").bounding_box()
    page.mouse.click(box["x"] + box["width"] * 0.5, box["y"] + 5)
    page.wait_for_function("() => location.hash.includes('window=')")
    colleague = page.context.new_page()
    colleague.set_default_timeout(SOON_MS)
    colleague.goto(page.url)
    colleague.wait_for_selector("#flame canvas")
    colleague.wait_for_selector(".live:not(.on)")
    assert colleague.evaluate(TITLE) == page.evaluate(TITLE)
    stands_still(colleague)


def stands_still(page: Any) -> None:
    """The window is the same although the recording grew."""
    title, hash_before = page.evaluate(TITLE), page.evaluate("location.hash")
    page.wait_for_function(GREW, arg=page.evaluate(RECORDED))
    assert page.evaluate(TITLE) == title
    assert page.evaluate("location.hash") == hash_before
