"""The HTML that `diagnose`, `flame` and `fleet flame` write: one file that a real Chromium opens
offline, with the verdict, the flame graph and the differential in it.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from tests.drawn_fleet import drawn_fleet
from tests.integration.drawn_incident import HOSTILE, drawn_incident, write

from necroscope.cli.main import necroscope
from necroscope.errors import NecroscopeError
from necroscope.views.web import export

CAPTURES = Path(__file__).parents[1] / "data" / "interchange"
WIDE = {"width": 1440, "height": 1000}
SOON_MS = 20_000


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("html") / "r", drawn_incident())


def run(*words: object) -> None:
    CliRunner().invoke(necroscope, [str(word) for word in words], catch_exceptions=False)


@contextmanager
def opened(browser: Any, file: Path) -> Iterator[Any]:
    """A script error, a refused resource or any request fails the test."""
    context = browser.new_context(viewport=WIDE, offline=True, color_scheme="dark")
    page, messages = context.new_page(), []
    page.set_default_timeout(SOON_MS)
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.on(
        "console",
        lambda message: messages.append(message.text) if message.type == "error" else None,
    )
    page.on(
        "request",
        lambda asked: messages.append(asked.url) if asked.url.startswith("http") else None,
    )
    try:
        page.goto(file.as_uri())
        page.wait_for_selector("#flame canvas")
        yield page
        assert messages == []
    finally:
        context.close()


def note(page: Any, lane: str = "#lane-flame") -> str:
    return str(page.locator(f"{lane} .note").inner_text())


def test_a_diagnosis_opens_at_the_incident_with_its_verdict(
    browser: Any, recording: Path, tmp_path: Path
) -> None:
    run("diagnose", recording, "--html", tmp_path / "d.html")
    with opened(browser, tmp_path / "d.html") as page:
        verdict = page.locator("#verdict").inner_text()
        for part in ("collector", "irq-core-collision", "eth0", "What to do", "core 1"):
            assert part in verdict
        # As in the terminal: who holds a lock is not on a core.
        assert page.locator("#verdict dt").first.inner_text() == "who"
        page.wait_for_function(
            "() => document.querySelector('#lane-flame h2').textContent.includes('core 1')"
        )
        before = page.evaluate("location.hash")
        page.locator("#verdict button[data-lane=events]").first.click()
        page.wait_for_function("before => location.hash !== before", arg=before)
        assert page.title() == "drawn-node · necroscope"


def test_a_flame_graph_can_be_searched_zoomed_and_turned(
    browser: Any, recording: Path, tmp_path: Path
) -> None:
    run("flame", recording, "--by", "core", "--by", "thread", "-o", tmp_path / "f.html")
    with opened(browser, tmp_path / "f.html") as page:
        assert page.locator("#group").input_value() == "core,thread"
        assert "without a diagnosis" in page.locator("#verdict").inner_text()
        whole = note(page)
        page.fill("#search", "print_cpu")
        page.wait_for_function(
            "() => document.querySelector('#lane-flame .note').textContent.includes('print_cpu')"
        )
        assert float(note(page).split(" in ")[1].split(" %")[0]) > 1
        page.locator("#flame").click(position={"x": 40, "y": 9})
        page.wait_for_function("() => location.hash.includes('zoom=')")
        page.click("#turned")
        page.wait_for_function("() => location.hash.includes('turned=1')")
        assert note(page).split(" samples")[0] == whole.split(" samples")[0]


def test_the_first_graph_is_of_all_samples_though_the_file_keeps_few(
    browser: Any, recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "MOST_SAMPLES", 100)
    run("flame", recording, "-o", tmp_path / "f.html")
    with opened(browser, tmp_path / "f.html") as page:
        whole = note(page)
        assert "is kept" not in whole
        page.click("#turned")
        page.wait_for_function(
            "() => document.querySelector('#lane-flame .note').textContent.includes('is kept')"
        )
        assert int(note(page).split(" ")[0]) <= 100


def test_more_samples_than_can_be_read_leave_the_first_graph(
    browser: Any, recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export, "_MOST_READ", 10)
    run("flame", recording, "-o", tmp_path / "f.html")
    with opened(browser, tmp_path / "f.html") as page:
        assert int(note(page).split(" ")[0].replace(",", "")) > 100
        page.click("#turned")
        page.wait_for_function(
            "() => document.querySelector('#lane-flame .note').textContent.includes('more than 10')"
        )


def test_a_differential_says_what_is_new(browser: Any, recording: Path, tmp_path: Path) -> None:
    words = ("--from", "-45s", "--to", "-39s", "--baseline", "-55s..-46s")
    run("flame", recording, *words, "-o", tmp_path / "f.html")
    with opened(browser, tmp_path / "f.html") as page:
        page.wait_for_selector("#lane-flame .key:has-text('more than in the baseline')")
        assert "against" in page.locator("#lane-flame h2").inner_text()
        page.locator("#flame").focus()
        tips = []
        for _ in range(3):
            page.keyboard.press("ArrowDown")
            tips.append(page.locator(".tip").inner_text())
        assert any("of the baseline's samples" in tip for tip in tips)


@pytest.mark.parametrize("name", ["file.data", "file.script.txt"])
def test_a_capture_without_other_tables_has_its_flame_graph(
    browser: Any, tmp_path: Path, name: str
) -> None:
    run("flame", CAPTURES / name, "-o", tmp_path / "f.html")
    with opened(browser, tmp_path / "f.html") as page:
        assert int(note(page).split(" ")[0].replace(",", "")) > 0
        empty = page.locator("#lane-tasks .empty")
        assert "No core was found held in this window" in empty.inner_text()


def test_a_fleet_s_flame_graph_and_its_differential(browser: Any, tmp_path: Path) -> None:
    drawn_fleet(tmp_path / "lake", time.time_ns())
    question = ("fleet", "flame", "--lake", tmp_path / "lake", "--since", "-30d")
    run(*question, "-o", tmp_path / "one.html")
    with opened(browser, tmp_path / "one.html") as page:
        assert "Flame graph of all nodes" in page.locator("h1").inner_text()
        assert "samples of" in page.locator("#flame-note").inner_text()
    groups = ("--where", "event=nic_reset", "--baseline", "not event=nic_reset")
    run(*question, *groups, "-o", tmp_path / "two.html")
    with opened(browser, tmp_path / "two.html") as page:
        assert " against " in page.locator("#flame-note").inner_text()
        page.wait_for_selector(".key:has-text('more than on the other nodes')")
        page.fill("#search", "timer_list_show")
        page.wait_for_selector("#flame-note:has-text('timer_list_show')")
        said = page.locator("#flame-note").inner_text()
        assert float(said.split("” in ")[1].split(" %")[0]) > 1


def test_hostile_names_do_nothing(browser: Any, recording: Path, tmp_path: Path) -> None:
    run("flame", recording, "--comm", HOSTILE, "--by", "name", "-o", tmp_path / "f.html")
    assert HOSTILE not in (tmp_path / "f.html").read_text("utf-8")
    with opened(browser, tmp_path / "f.html") as page:
        assert page.locator("#process").input_value() == HOSTILE
        assert page.title() == "drawn-node · necroscope"
        assert page.locator("img").count() == 0


def test_a_page_that_was_not_built_is_an_error_before_the_work(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(export.check_built, "__defaults__", (tmp_path,))
    with pytest.raises(NecroscopeError, match="not built") as caught:
        run("diagnose", recording, "--html", tmp_path / "d.html")
    assert "npm run build" in caught.value.hint
    assert not (tmp_path / "d.html").exists()
