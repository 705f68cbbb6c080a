"""The SVG: well-formed, readable without a script, escaped, and alive in a real browser."""

from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from necroscope.model.frame import Frame
from necroscope.stacks.differential import DifferentialTree
from necroscope.stacks.flame_tree import FlameTree
from necroscope.views.flame.heading import Heading, HeadingWindow
from necroscope.views.flame.svg import differential_svg, flame_svg

SVG = "{http://www.w3.org/2000/svg}"


def groups(text: str) -> dict[str, ET.Element]:
    """Boxes by the first line of their title."""
    root = ET.fromstring(text.encode())
    boxes = root.find(f".//{SVG}g[@id='boxes']")
    assert boxes is not None
    return {str(group.findtext(f"{SVG}title")).split("\n")[0]: group for group in boxes}


def tree_of_names(names: list[str]) -> FlameTree:
    """Each calls the next; the innermost has the one sample."""
    count = len(names)
    numbers = np.arange(count, dtype=np.int32)
    frames = [Frame(name, name, "user", None, None) for name in names]
    own = (numbers == count - 1).astype(np.int64)
    return FlameTree(numbers - 1, numbers, own, np.ones(count, np.int64), frames, 0, 1, 1, [])


def words(text: str) -> list[str]:
    return [element.text or "" for element in ET.fromstring(text.encode()).iter(f"{SVG}text")]


def test_widths_are_shares_and_labels_carry_their_kind(tree: FlameTree, heading: Heading) -> None:
    found = groups(flame_svg(tree, heading, width=1020))
    rect, label = (
        found["mem_cgroup_iter"].find(f"{SVG}rect"),
        found["mem_cgroup_iter"].findtext(f"{SVG}text"),
    )
    assert rect is not None
    assert float(rect.attrib["width"]) == pytest.approx(600)
    assert label == "mem_cgroup_iter [k]"
    assert found["eval"].findtext(f"{SVG}text") == "eval [j]"
    assert (
        found["mem_cgroup_iter"].findtext(f"{SVG}title")
        == "mem_cgroup_iter\nkernel, [kernel]\n60 samples, 60.00 %, 60 of its own"
    )


def test_a_label_is_cut_to_its_box(tree: FlameTree, heading: Heading) -> None:
    assert groups(flame_svg(tree, heading, width=420))["epoll_wait"].find(f"{SVG}text") is None
    assert (
        groups(flame_svg(tree, heading, width=1620))["epoll_wait"].findtext(f"{SVG}text")
        == "epoll_wait…"
    )


def test_head_says_window_cores_samples_and_what_was_left_out(
    tree: FlameTree, heading: Heading
) -> None:
    said = "\n".join(words(flame_svg(tree, heading)))
    assert (
        "node-7, core 7, comm app: 2026-09-21T14:13:20.000Z to 2026-09-21T14:13:25.000Z (5 s), 100"
        " samples" in said
    )
    assert "left out: 2 s: torn" in said
    assert "kernel [k]" in said


def test_what_is_cut_is_said(heading: Heading, many_narrow: FlameTree) -> None:
    assert any(
        line.startswith("not drawn: 50,000 frames")
        for line in words(flame_svg(many_narrow, heading))
    )


def test_changes_differ_by_sign_and_hatch_not_by_colour_alone(
    differential: DifferentialTree, heading: Heading
) -> None:
    found = groups(differential_svg(differential, heading))
    labels = {name: group.findtext(f"{SVG}text") for name, group in found.items()}
    assert labels["mem_cgroup_iter"] == "✚ mem_cgroup_iter [k]"
    assert str(labels["old_code"]).startswith("✖ ")
    assert labels["do_syscall_64"] == "▲ do_syscall_64 [k]"
    assert labels["work"] == "▲ work"
    assert [
        len(found[name].findall(f"{SVG}rect[@class='over']"))
        for name in ("mem_cgroup_iter", "old_code", "work")
    ] == [
        1,
        1,
        0,
    ]
    assert "only in the baseline: -10.00 percentage points" in str(
        found["old_code"].findtext(f"{SVG}title")
    )


def test_hostile_names_are_text_and_nothing_else(
    hostile_tree: FlameTree, hostile_heading: Heading
) -> None:
    root = ET.fromstring(flame_svg(hostile_tree, hostile_heading).encode())
    assert len(list(root.iter(f"{SVG}script"))) == 2
    assert not list(root.iter(f"{SVG}image"))
    titles = [str(title.text) for title in root.iter(f"{SVG}title")]
    assert any(
        title.startswith("</script><script>document.title='pwned'</script>\n") for title in titles
    )
    assert any(title.startswith("new\\x0aline\n") for title in titles)


@given(st.lists(st.text(), min_size=1, max_size=6), st.text())
def test_any_text_makes_a_well_formed_picture(names: list[str], title: str) -> None:
    tree = tree_of_names(names)
    root = ET.fromstring(
        flame_svg(tree, Heading(title, title, HeadingWindow(0, 1, 1), left_out=(title,))).encode()
    )
    assert len(list(root.iter(f"{SVG}script"))) == 2


def test_nothing_is_fetched(tree: FlameTree, heading: Heading) -> None:
    assert "href" not in flame_svg(tree, heading)
    assert flame_svg(tree, heading).replace("http://www.w3.org/", "").count("http") == 0


def test_a_stack_of_ten_thousand_frames_is_cut_at_a_depth_that_viewers_bear(
    deep: FlameTree, heading: Heading
) -> None:
    text = flame_svg(deep, heading)
    assert float(ET.fromstring(text.encode()).attrib["height"]) < 2**15
    assert any("not drawn: 8,500 frames" in line for line in words(text))


def test_a_browser_zooms_searches_and_resets(
    tree: FlameTree, heading: Heading, browser: Any, tmp_path: Path
) -> None:
    file = tmp_path / "flame.svg"
    file.write_text(flame_svg(tree, heading))
    browser.open(file)
    place = (
        "(name, edge) => {const group = [...document.querySelectorAll('#boxes > g')].find((g) =>"
        " g.textContent.startsWith(name));"
    )
    place += "return edge(group.querySelector('rect').getBoundingClientRect())}"
    x, y = browser.evaluate(
        f"({place})('do_syscall_64', (r) => [r.x + r.width / 2, r.y + r.height / 2])"
    )
    before = browser.evaluate(f"({place})('do_syscall_64', (r) => r.width)")
    browser.click(x, y)
    assert browser.evaluate(f"({place})('do_syscall_64', (r) => r.width)") > before * 1.5
    assert browser.status().startswith("do_syscall_64; kernel, [kernel]; 60 samples, 60.00 %")
    browser.press("/", *"epoll|eval")
    assert browser.status().startswith('"epoll|eval": 2 frames, 20 samples, 20.00 %')
    browser.press("Escape")
    assert browser.evaluate(f"({place})('do_syscall_64', (r) => r.width)") == pytest.approx(
        before, abs=0.1
    )


def test_a_box_too_narrow_for_its_label_gets_it_when_it_is_wide(
    tree: FlameTree, heading: Heading, browser: Any, tmp_path: Path
) -> None:
    file = tmp_path / "flame.svg"
    file.write_text(flame_svg(tree, heading, width=420))
    browser.open(file)
    narrow = (
        "[...document.querySelectorAll('#boxes > g')]"
        ".find((g) => g.textContent.startsWith('epoll_wait'))"
    )
    assert browser.evaluate(f"{narrow}.querySelector('text')") is None
    x, y = browser.evaluate(
        f"(({{x, y, width, height}}) => [x + width / 2, y + height / 2])"
        f"({narrow}.querySelector('rect').getBoundingClientRect())"
    )
    browser.click(x, y)
    assert browser.evaluate(f"{narrow}.querySelector('text').textContent") == "epoll_wait [k]"
    y_of = f"{narrow}.querySelector('%s').getBBox().y"
    assert browser.evaluate(y_of % "text") == pytest.approx(browser.evaluate(y_of % "rect"), abs=6)
    browser.press("Escape")
    assert browser.evaluate(f"{narrow}.querySelector('text').textContent") == ""


def test_arrow_keys_walk_the_graph(
    tree: FlameTree, heading: Heading, browser: Any, tmp_path: Path
) -> None:
    file = tmp_path / "flame.svg"
    file.write_text(flame_svg(tree, heading))
    browser.open(file)
    browser.press("ArrowUp", "ArrowUp", "ArrowUp")
    assert browser.status().startswith("work;")
    browser.press("ArrowLeft")
    assert browser.status().startswith("eval;")
    browser.press("ArrowDown")
    assert browser.status().startswith("main;")


def test_hostile_names_do_nothing_in_a_browser(
    hostile_tree: FlameTree, hostile_heading: Heading, browser: Any, tmp_path: Path
) -> None:
    file = tmp_path / "hostile.svg"
    file.write_text(flame_svg(hostile_tree, hostile_heading))
    browser.open(file)
    assert browser.evaluate("document.querySelectorAll('script').length") == 2
    assert (
        browser.evaluate("document.querySelectorAll('#boxes > g').length")
        == len(hostile_tree.parent) + 1
    )
    assert browser.evaluate("document.title") != "pwned"
