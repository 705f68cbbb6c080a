"""The lane of waits as a person uses it: who waited, behind whom, both stacks, and the page at that
time.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.drawn_node import DrawnNode, drawn_node
from tests.drawn_waits import by, wait
from tests.integration.conftest import served
from tests.integration.drawn_incident import HOSTILE, write
from tests.integration.test_view_page import SOON_MS, WIDE, changed, window_s, words

SLEPT = "rwsem_down_write_slowpath;ext4_create;path_openat"
RELEASED = "rwsem_wake;up_write;ext4_create"


def waiting_node() -> DrawnNode:
    node = drawn_node(f"""
        core 0:  {"." * 60}
        core 1:  {"." * 20}{"s" * 5}{"." * 35}
        s: user  spin[9]  /user.slice/spin  main, turn
    """)
    for second in range(60):
        node.add("run_delay", second, cpu=1, count=1, worst_ns=1000, histogram=[1])
    spin = by("spin", 9, policy="fifo", ran_ns=2 * 10**9)
    wait(node, 20, 2.5, "raylet", 70, cgroup="/ray.slice", **spin)
    wait(node, 23, 0.5, "raylet", 70, **spin)
    wait(node, 40, 1.2, "etcd", 80, cpu=0, stack=SLEPT, **by(HOSTILE, 99, stack=RELEASED))
    wait(node, 41, 0.1, "pool", 90, kind="futex", stack="futex_wait;do_futex")
    return node


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with served(write(tmp_path_factory.mktemp("waits") / "r", waiting_node())) as found:
        yield found


@pytest.fixture
def page(browser: Any, address: str) -> Iterator[Any]:
    context = browser.new_context(viewport=WIDE, accept_downloads=True)
    page = context.new_page()
    page.set_default_timeout(SOON_MS)
    messages: list[str] = []
    page.on("pageerror", lambda error: messages.append(str(error)))
    page.goto(f"{address}#mode=busy")
    page.wait_for_selector(".wait-label")
    yield page
    context.close()
    assert messages == []


def labels(page: Any) -> list[str]:
    return list(page.locator(".wait-label").all_inner_texts())


def test_each_row_says_who_waited_for_what_behind_whom(page: Any) -> None:
    assert labels(page) == [
        "raylet wanted a core behind spin · 2 times, longest 2.5 s",
        f"etcd slept in the kernel (i_rwsem), ended by {HOSTILE} · once, longest 1.2 s",
        "pool lock of its own program · once, longest 100 ms",
    ]
    assert page.locator("#lane-waits img").count() == 0


def test_a_click_on_a_bar_opens_both_sides_and_the_core_at_that_time(page: Any) -> None:
    box = page.locator("#lane-waits .surface").bounding_box()
    state = changed(
        page, lambda: page.mouse.click(box["x"] + box["width"] * 21.5 / 60, box["y"] + 24)
    )
    assert state["core"] == "1"
    assert window_s(state) == (pytest.approx(20), pytest.approx(22.5))
    text = page.locator("#wait").inner_text()
    assert "raylet[70] waited 2.5 s for core 1" in text
    assert "spin[9] had core 1, for 2 s without a break" in text
    page.wait_for_selector("#wait .stack li:has-text('turn')")
    page.wait_for_selector("#lane-cores .core-number.chosen:has-text('core 1')")
    page.wait_for_function(
        "() => document.querySelector('#lane-flame h2').textContent.includes('Who ran on core 1')"
    )


def test_a_sleeper_has_its_stack_and_that_of_who_gave_the_lock_back(page: Any) -> None:
    changed(page, lambda: page.locator(".wait-label", has_text="etcd").click())
    sides = page.locator("#wait .both-sides > div").all_inner_texts()
    assert "path_openat" in sides[0]
    assert f"{HOSTILE}[99] gave the lock back" in sides[1]
    assert "rwsem_wake" in sides[1]
    assert page.locator("#wait img").count() == 0


def test_keys_go_through_the_waits_by_length_and_a_link_leads_to_one(page: Any) -> None:
    first = changed(page, lambda: page.keyboard.press("s"))
    assert first["wait"].startswith("70-")
    page.wait_for_selector("#wait h3:has-text('2.5 s')")
    changed(page, lambda: page.keyboard.press("s"))
    page.wait_for_selector("#wait h3:has-text('etcd[80]')")
    colleague = page.context.new_page()
    colleague.goto(page.url)
    colleague.wait_for_selector("#wait h3:has-text('etcd[80]')", timeout=SOON_MS)
    assert changed(page, lambda: page.keyboard.press("W"))["wait"] == first["wait"]
    assert "wait" not in changed(page, lambda: page.click("#close-wait"))


def test_the_flame_graph_of_waits_has_the_programs_and_can_be_compared(page: Any) -> None:
    page.keyboard.press("s")
    page.wait_for_selector("#wait")
    changed(page, lambda: page.click("text=all waits of process 70"))
    assert words(page)["of"] == "waits"
    page.wait_for_function(
        "() => document.querySelector('#lane-flame .note').textContent.includes('ms waited')"
    )
    assert page.locator("#group").is_disabled()
    changed(page, lambda: page.click("#compare"))
    page.wait_for_selector("#lane-flame .key:has-text('more than in the baseline')")
    assert "of" not in changed(page, lambda: page.keyboard.press("x"))


def test_an_export_holds_the_waits_and_their_flame_graph(
    page: Any, browser: Any, tmp_path: Path
) -> None:
    page.keyboard.press("s")
    page.wait_for_selector("#wait")
    with page.expect_download() as download:
        page.click("#export")
    file = tmp_path / "export.html"
    download.value.save_as(file)
    context = browser.new_context(viewport=WIDE, offline=True)
    try:
        offline = context.new_page()
        offline.set_default_timeout(SOON_MS)
        offline.goto(file.as_uri())
        offline.wait_for_selector("#wait h3:has-text('raylet[70] waited 2.5 s')")
        offline.select_option("#of", "waits")
        offline.wait_for_function(
            "() => document.querySelector('#lane-flame .note').textContent"
            ".includes('2,500 ms waited')"
        )
    finally:
        context.close()


def test_a_recording_without_waits_says_why(browser: Any, tmp_path: Path) -> None:
    node = drawn_node(f"core 0:  {'.' * 20}")
    with served(write(tmp_path / "r", node)) as address:
        page = browser.new_page(viewport=WIDE)
        page.goto(address)
        page.wait_for_selector("#lane-waits .empty:has-text('Waits were not recorded')")
        page.close()


def test_an_empty_diagnosis_names_the_busiest_stretch_in_a_mode_that_shows_it(
    browser: Any, tmp_path: Path
) -> None:
    node = drawn_node(f"""
        core 0:  {"." * 30}
        core 1:  {"." * 12}{"w" * 4}{"." * 14}
        w: user  worker[600]  /user.slice/worker  main, compute
    """)
    with served(write(tmp_path / "r", node)) as address:
        page = browser.new_page(viewport=WIDE)
        page.set_default_timeout(SOON_MS)
        page.goto(address)
        page.wait_for_selector("#verdict h2:has-text('Nothing was found')")
        assert "core 1 at" in page.locator("#busiest").inner_text()
        assert page.locator("#mode").input_value() == "user"
        state = changed(page, lambda: page.click("#busiest"))
        assert state["core"] == "1"
        page.wait_for_function(
            "() => document.querySelector('#lane-flame h2').textContent.includes('core 1')"
        )
        page.close()
