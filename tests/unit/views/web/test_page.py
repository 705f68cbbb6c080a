"""The pages' own tests: types by the compiler, the pure parts by Vitest, and what the built pages
may weigh and contain.
"""

import gzip
import subprocess
from pathlib import Path

import pytest
from tests.programs import program

from necroscope.views.web.export import STATIC

WEB = Path(__file__).parents[4] / "web"
PROGRAMS = WEB / "node_modules" / ".bin"
MOST_BYTES = 300_000
needs_tools = pytest.mark.skipif(
    not (PROGRAMS / "vitest").exists() or program("node") is None,
    reason="node and the page's tools are not installed",
)
needs_page = pytest.mark.skipif(
    not (STATIC / "index.html").exists(), reason="the page was not built (scripts/setup builds it)"
)


@needs_tools
@pytest.mark.parametrize(
    "command", [["vitest", "run"], ["tsc", "--noEmit"]], ids=lambda command: command[0]
)
def test_the_page_passes_its_own_checks(command: list[str]) -> None:
    words = [program("node"), PROGRAMS / command[0], *command[1:]]
    done = subprocess.run(
        words, cwd=WEB, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    assert done.returncode == 0, done.stdout


def test_names_from_the_machine_are_never_markup() -> None:
    sources = [path for path in (WEB / "src").rglob("*") if path.suffix in (".ts", ".tsx")]
    assert len(sources) > 20
    for path in sources:
        text = path.read_text()
        for way in (
            "innerHTML",
            "outerHTML",
            "insertAdjacentHTML",
            "document.write",
            "dangerouslySetInnerHTML",
            "eval(",
        ):
            assert way not in text, f"{path.name} uses {way}"


def test_parts_of_the_pages_import_in_one_direction() -> None:
    order = ["lib", "logic", "draw", "views"]
    for path in [
        path
        for path in (WEB / "src").rglob("*/*")
        if path.suffix in (".ts", ".tsx") and path.parent.name in order
    ]:
        later = order[order.index(path.parent.name) + 1 :]
        text = path.read_text()
        assert not [part for part in later if f"/{part}/" in text], path
        # The fleet's page stands on the time machine's parts, never the other way round.
        assert "fleet" in path.parts or "/fleet/" not in text, path


@needs_page
def test_both_pages_together_weigh_little_and_ask_nobody_else() -> None:
    files = [STATIC / "index.html", STATIC / "fleet.html", *(STATIC / "assets").iterdir()]
    assert sum(len(gzip.compress(path.read_bytes())) for path in files) < MOST_BYTES
    for path in files:
        assert b"//cdn" not in path.read_bytes()
    assert (STATIC / "speedscope" / "index.html").exists()
