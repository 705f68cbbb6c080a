"""The docs say what the code does: generated pages are fresh, links lead somewhere, commands and
scripts that are named exist.
"""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest
import yaml

from necroscope import settings
from necroscope.sources.kernel_log.user_patterns import parse_user_patterns

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
PICTURE = re.compile(r'(?:src|srcset)="([^"]+)"')
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)(?:#[^)]*)?\)")


def words_after(start: str) -> dict[str, set[str]]:
    """The words that follow `start` in code spans and blocks, by page."""
    code = re.compile(r"```.*?```|`[^`\n]+`", re.DOTALL)
    word = re.compile(rf"(?<![\w/.-]){re.escape(start)}([a-z][\w-]*)")
    return {
        page.name: set(word.findall("\n".join(code.findall(page.read_text("utf-8")))))
        for page in PAGES
    }


@pytest.fixture(scope="module")
def generate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("docs_generate", ROOT / "docs" / "generate.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_generated_pages_are_up_to_date(generate: ModuleType) -> None:
    stale = [
        name
        for name, page in generate.PAGES.items()
        if (ROOT / "docs" / name).read_text("utf-8") != page()
    ]
    assert not stale, "run scripts/generate-docs"


def test_the_settings_file_in_the_docs_holds_the_defaults(
    generate: ModuleType, tmp_path: Path
) -> None:
    example = re.search(r"```toml\n(.*?)```", generate.settings_page(), re.DOTALL)
    assert example is not None
    file = tmp_path / "necroscope.toml"
    file.write_text(example[1], "utf-8")
    assert settings.parse(settings.read_file(file)) == settings.parse({})


def test_the_patterns_in_the_docs_are_read(generate: ModuleType) -> None:
    example = re.findall(r"```toml\n(.*?)```", generate.settings_page(), re.DOTALL)[1]
    (pattern,) = parse_user_patterns(example, "docs")
    found = pattern.regex.search("acme mlx0: fabric error on port 3")
    assert found is not None
    assert found.groupdict() == {"device": "mlx0", "port": "3"}
    assert pattern.alarm


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files(page: Path) -> None:
    assert not [
        target
        for target in LINK.findall(page.read_text("utf-8"))
        if not (page.parent / target).exists()
    ]


def test_pictures_are_there_small_and_shown() -> None:
    shown = {
        (page.parent / target).resolve()
        for page in PAGES
        for target in PICTURE.findall(page.read_text("utf-8"))
    }
    kept = set((ROOT / "docs" / "pictures").iterdir())
    assert shown == kept
    assert not [path.name for path in kept if path.stat().st_size >= 200_000]


def test_the_index_leads_to_every_page_and_the_readme_to_the_index() -> None:
    docs = ROOT / "docs"
    linked = {
        (docs / target).resolve() for target in LINK.findall((docs / "index.md").read_text("utf-8"))
    }
    assert set(docs.rglob("*.md")) - linked == {docs / "index.md"}
    first = {
        (ROOT / target).resolve()
        for target in LINK.findall((ROOT / "README.md").read_text("utf-8"))
    }
    start = {docs / name for name in ("index.md", "tutorial.md", "which-command.md")}
    assert start | set(ROOT.glob("*.md")) - {ROOT / "README.md"} <= first


def test_the_site_lists_every_page() -> None:
    site = yaml.safe_load((ROOT / "mkdocs.yml").read_text("utf-8"))
    listed = re.findall(r"[\w/-]+\.md", str(site["nav"]))
    pages = {str(page.relative_to(ROOT / "docs")) for page in (ROOT / "docs").rglob("*.md")}
    assert len(listed) == len(set(listed))
    assert pages <= set(listed)


def test_commands_that_are_named_exist() -> None:
    commands = {path.stem for path in (ROOT / "src" / "necroscope" / "cli").glob("*.py")}
    assert not {
        page: words - commands
        for page, words in words_after("necroscope ").items()
        if words - commands
    }


def test_scripts_that_are_named_exist() -> None:
    scripts = {path.name for path in (ROOT / "scripts").iterdir()}
    assert not {
        page: words - scripts for page, words in words_after("scripts/").items() if words - scripts
    }


def test_the_unit_and_the_docs_name_the_same_capabilities() -> None:
    unit = (ROOT / "deploy" / "necroscope.service").read_text("utf-8")
    granted = [
        set(line.split())
        for line in re.findall(r"^(?:Ambient|Bounding|Capability\w*)\w*=(.*)$", unit, re.MULTILINE)
    ]
    assert len(granted) == 2
    assert granted[0] == granted[1]
    documented = set(re.findall(r"CAP_\w+", (ROOT / "docs" / "privileges.md").read_text("utf-8")))
    assert granted[0] <= documented


def test_every_row_of_the_threat_model_names_tests_that_exist() -> None:
    page = (ROOT / "docs" / "security.md").read_text("utf-8")
    heads = ("| who |", "| finding |", "| --- ")
    rows = [line for line in page.splitlines() if line.startswith("| ")]
    rows = [row for row in rows if not row.startswith(heads)]
    assert len(rows) > 40
    for row in rows:
        named = re.findall(r"`(tests/[\w/]+\.py|scripts/[\w-]+)`", row.rsplit("|", 2)[1])
        assert named, row
        assert [path for path in named if not (ROOT / path).is_file()] == []


def test_the_architecture_page_names_every_part_and_only_files_that_exist() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")
    tree = ROOT / "src" / "necroscope"
    named = set(re.findall(r"`([a-z_]+(?:/[\w.]+)*/?)`", page))
    parts = {path.stem for path in tree.iterdir() if not path.name.startswith(("_", "py.typed"))}
    assert parts - named == set()
    paths = {name for name in named if "/" in name}
    assert len(paths) > 8
    roots = (tree, ROOT)
    lost = [name for name in paths if not any((root / name).exists() for root in roots)]
    assert lost == []


def test_the_index_for_assistants_leads_to_pages_that_exist() -> None:
    page = ROOT / "docs" / "llms.txt"
    links = LINK.findall(page.read_text("utf-8"))
    assert len(links) > 15
    assert [link for link in links if not (page.parent / link).exists()] == []
