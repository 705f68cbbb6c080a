"""Both pages in front of axe in a real Chromium, and the time machine on a phone: no serious finding,
no sideways scrolling.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.drawn_fleet import drawn_fleet
from tests.integration.conftest import served
from tests.integration.drawn_incident import drawn_incident, write
from tests.integration.test_view_page import SOON_MS, WIDE
from tests.integration.test_view_waits import waiting_node
from tests.served_collector import served as served_collector

from necroscope.cli.view import recording_of
from necroscope.fleet.collector.app import create_fleet_app
from necroscope.fleet.tokens import Grant, Tokens, digest_of

AXE = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
PHONE = {"width": 390, "height": 844}
pytestmark = pytest.mark.skipif(not AXE.exists(), reason="axe-core is not installed")
RUN = """async () => {
  const { violations } = await axe.run();
  return violations
    .filter(({ impact }) => impact === "serious" || impact === "critical")
    .map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html.slice(0, 160)).join(" | ")}`);
}"""


def serious(page: Any) -> list[str]:
    page.evaluate(AXE.read_text())
    found: list[str] = page.evaluate(RUN)
    return found


@pytest.fixture(scope="module", params=["incident", "waits"])
def address(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    node = drawn_incident() if request.param == "incident" else waiting_node()
    with served(write(tmp_path_factory.mktemp("axe") / "r", node)) as found:
        yield found


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE], ids=["desktop", "phone"])
def test_the_time_machine_has_no_serious_finding(
    browser: Any, address: str, size: dict[str, int], scheme: str
) -> None:
    context = browser.new_context(viewport=size, color_scheme=scheme, reduced_motion="reduce")
    try:
        page = context.new_page()
        page.set_default_timeout(SOON_MS)
        page.goto(address)
        page.wait_for_selector("#core-map[data-complete=yes]")
        page.wait_for_selector("#verdict h2:not(:has-text('Looking'))")
        page.keyboard.press("s")
        page.wait_for_selector(".lane.lit", state="detached")
        page.wait_for_selector(".spinner", state="detached")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert serious(page) == []
        page.keyboard.press("?")
        assert serious(page) == []
    finally:
        context.close()


def test_the_fleets_page_has_no_serious_finding(browser: Any, tmp_path: Path) -> None:
    lake = drawn_fleet(tmp_path / "lake", time.time_ns())
    tokens = Tokens({digest_of("reader"): Grant("eu-1", "read")})
    context = browser.new_context(viewport=WIDE, reduced_motion="reduce")
    try:
        with served_collector(create_fleet_app(lake, tokens, recording_of)) as client:
            page = context.new_page()
            page.set_default_timeout(SOON_MS)
            page.goto(f"{client.base_url}/#token=reader&since=-48h")
            page.wait_for_selector("#why")
            assert serious(page) == []
            for tab in ("incidents", "nodes", "compare"):
                page.click(f"#tab-{tab}")
                page.wait_for_selector(f"#tab-{tab}[aria-selected=true]")
                assert serious(page) == []
    finally:
        context.close()
