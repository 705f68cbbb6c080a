"""The page: one file, a policy that lets nothing else run, names as data, and alive in a real
browser.
"""

import json
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

from necroscope.stacks.differential import DifferentialTree
from necroscope.stacks.flame_tree import FlameTree
from necroscope.views.flame.heading import Heading
from necroscope.views.flame.html import differential_html, flame_html


class Page(HTMLParser):
    """Elements, their attributes, and the text in each kind of element."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self._open = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self._open = tag

    def handle_data(self, data: str) -> None:
        self.texts.append((self._open, data))

    def count(self, tag: str) -> int:
        return sum(name == tag for name, _ in self.elements)

    def graph(self) -> dict[str, Any]:
        graph: dict[str, Any] = json.loads(
            next(text for tag, text in self.texts if tag == "script")
        )
        return graph


def test_the_page_holds_all_boxes_and_their_texts(tree: FlameTree, heading: Heading) -> None:
    graph = Page(flame_html(tree, heading)).graph()
    box = graph["names"].index("mem_cgroup_iter")
    assert graph["labels"][box] == ["mem_cgroup_iter [k]"]
    assert (
        graph["titles"][graph["name"].index(box)]
        == "mem_cgroup_iter\nkernel, [kernel]\n60 samples, 60.00 %, 60 of its own"
    )
    assert graph["width"][0] == 100


def test_head_says_window_cores_samples_and_what_was_left_out(
    tree: FlameTree, heading: Heading
) -> None:
    said = [text for tag, text in Page(flame_html(tree, heading)).texts if tag == "p"]
    assert (
        "node-7, core 7, comm app: 2026-09-21T14:13:20.000Z to 2026-09-21T14:13:25.000Z (5 s), 100"
        " samples" in said
    )
    assert "left out: 2 s: torn" in said


def test_only_the_page_s_own_script_and_style_may_run(tree: FlameTree, heading: Heading) -> None:
    page = Page(flame_html(tree, heading))
    policy = next(
        str(found["content"])
        for tag, found in page.elements
        if tag == "meta" and "http-equiv" in found
    )
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert "unsafe" not in policy
    assert not [found for _, found in page.elements if {"src", "href", "onclick"} & found.keys()]


def test_hostile_names_are_data_and_nothing_else(
    hostile_tree: FlameTree, hostile_heading: Heading
) -> None:
    page = Page(flame_html(hostile_tree, hostile_heading))
    assert (
        page.count("script"),
        page.count("style"),
        page.count("image"),
        page.count("title"),
    ) == (2, 1, 0, 1)
    assert "</script><script>document.title='pwned'</script>" in page.graph()["names"]


def test_a_browser_zooms_by_click_and_shows_what_the_pointer_is_on(
    tree: FlameTree, heading: Heading, browser: Any, tmp_path: Path
) -> None:
    file = tmp_path / "flame.html"
    file.write_text(flame_html(tree, heading))
    browser.open(file)
    bottom = browser.evaluate("document.getElementById('main').getBoundingClientRect().bottom")
    browser.move(600, bottom - 3.5 * 18)
    tip = "document.getElementById('tip')"
    assert (
        browser.evaluate(f"{tip}.textContent")
        == "work\nuser, /bin/app\n80 samples, 80.00 %, 20 of its own"
    )
    browser.click(600, bottom - 3.5 * 18)
    assert browser.status().startswith("work; ")
    assert browser.evaluate("location.hash").startswith("#box=")
    browser.press("Backspace")
    assert browser.status().startswith("main; ")


def test_a_browser_searches_and_sums_no_sample_twice(
    tree: FlameTree, heading: Heading, browser: Any, tmp_path: Path
) -> None:
    file = tmp_path / "flame.html"
    file.write_text(flame_html(tree, heading))
    browser.open(file)
    browser.press("/", *"main|work|epoll")
    assert browser.status() == '"main|work|epoll": 4 frames, 100 samples, 100.00 %'
    browser.press("Escape")
    assert browser.status() == "9 frames"


def test_a_link_opens_the_page_in_the_same_state(
    tree: FlameTree, heading: Heading, browser: Any, tmp_path: Path
) -> None:
    file = tmp_path / "flame.html"
    file.write_text(flame_html(tree, heading))
    browser.open(file, "#search=eval(")
    assert browser.status() == '"eval(": 0 frames, 0 samples, 0.00 %'


def test_theme_and_direction_change_the_picture(
    differential: DifferentialTree, heading: Heading, browser: Any, tmp_path: Path
) -> None:
    file = tmp_path / "flame.html"
    file.write_text(differential_html(differential, heading))
    browser.open(file)
    pictures = [browser.picture()]
    for key in ("t", "i"):
        browser.press(key)
        pictures.append(browser.picture())
    assert len(set(pictures)) == 3


def test_the_policy_stops_a_foreign_script(
    tree: FlameTree, heading: Heading, browser: Any, tmp_path: Path
) -> None:
    file = tmp_path / "flame.html"
    file.write_text(
        flame_html(tree, heading).replace(
            "</body>", "<script>document.title='pwned'</script></body>"
        )
    )
    browser.open(file)
    assert browser.evaluate("document.title") == "Flame graph"


def test_hostile_names_do_nothing_in_a_browser(
    hostile_tree: FlameTree, hostile_heading: Heading, browser: Any, tmp_path: Path
) -> None:
    file = tmp_path / "hostile.html"
    file.write_text(flame_html(hostile_tree, hostile_heading))
    browser.open(file)
    assert browser.evaluate("document.querySelectorAll('script').length") == 2
    assert browser.evaluate("document.title") == "<script>document.title='pwned'</script>"
    assert browser.status() == f"{len(hostile_tree.parent)} frames"


def test_fifty_thousand_frames_are_drawn_within_a_frame_or_two(
    many_narrow: FlameTree, heading: Heading, browser: Any, tmp_path: Path
) -> None:
    file = tmp_path / "many.html"
    file.write_text(flame_html(many_narrow, heading))
    browser.open(file)
    script = (
        "(() => {const start = performance.now(); window.dispatchEvent(new Event('resize')); return"
        " performance.now() - start})()"
    )
    assert min(browser.evaluate(script) for _ in range(3)) < 100


def test_a_stack_of_ten_thousand_frames_can_be_scrolled(
    deep: FlameTree, heading: Heading, browser: Any, tmp_path: Path
) -> None:
    file = tmp_path / "deep.html"
    file.write_text(flame_html(deep, heading))
    browser.open(file)
    assert browser.evaluate("document.getElementById('main').scrollHeight") > 10_000 * 18
    assert browser.evaluate("document.getElementById('canvas').height") < 2_000
