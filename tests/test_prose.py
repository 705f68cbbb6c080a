"""What people read is plain English: pages are easy to read, no sentence is endless, and the habits
that made readers stumble do not come back.

Reading ease is Flesch's, by textstat: 60 to 70 is plain English, above 70 is easy.
"""

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path

import pytest
import textstat

ROOT = Path(__file__).parents[1]
PAGES = [*sorted(ROOT.glob("*.md")), *sorted((ROOT / "docs").rglob("*.md"))]
LEAST_EASE = 70
MOST_WORDS = 40
NAMELESS = r"\b(?:some|any|every)body\b|(?<!`)\bnobody\b(?!`)|\b[Ww]hoever\b"
HABITS = {
    r"\b(?:is|are|was|were|be|been) told\b(?! apart| from| to\b| so\b)": "say reported, shown or listed",
    r"(?<!there )(?<!There )\b(?:is|are|was|were) no (?!more\b|longer\b|one\b|such\b)[a-z]+\b(?= that|[.,;:])": (
        "say: is not a"
    ),
    NAMELESS: "name the actor",
    r"\bso (?:many|long|much)\b(?! as\b| that\b)": "say: this many, or the number",
    r"(?<!\{)\bbeside\b": "say: next to, compared with, or in addition to",
    r"\banew\b|\bfor ever\b|\bbesides\b|\bdearer\b|\bfor want of\b": "say: again, forever, also, cost",
    r"(?<!-)\d (?!for )(?:\w+ )?an? (?:second|minute|hour|day|node|core)\b|\b(?:once|times) a (?:second|minute|core)\b": (
        "say: per second"
    ),
    r"\b(?:leave|left|leaves) \w* ?away\b": "say: omit",
}


def prose(page: str) -> list[str]:
    """The paragraphs and list items of a page, without code, tables and headings."""
    text = re.sub(r"```.*?```", "", page, flags=re.DOTALL)
    text = re.sub(r"<!--.*?-->|<[^>]+>", "", text, flags=re.DOTALL)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = re.sub(r"`[^`]*`", "code", text).replace("*", "")
    pieces = (" ".join(piece.split()) for piece in re.split(r"\n\n|\n(?= *[-|#]|\d+\. )", text))
    plain = [re.sub(r"^(?:- |\d+\. )", "", each) for each in pieces if each and each[0] not in "|#"]
    return [each if each[-1] in ".?!:" else f"{each}." for each in plain if each]


def sentences(paragraph: str) -> list[str]:
    return re.split(r"(?<=[.?!:;])\s+", paragraph)


def spoken(path: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of each text of a module that users may see: all but docstrings."""
    tree = ast.parse(path.read_text("utf-8"))
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    hidden = {
        id(node.body[0].value)
        for node in ast.walk(tree)
        if isinstance(node, documented) and node.body and isinstance(node.body[0], ast.Expr)
    }
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in hidden
        ):
            yield node.lineno, node.value


def remarks(path: Path) -> Iterator[tuple[int, str]]:
    """(line, text) of each docstring and comment of a module: what its next author reads."""
    source = path.read_text("utf-8")
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, documented) and (text := ast.get_docstring(node)):
            yield node.body[0].lineno, " ".join(text.split())
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            yield token.start[0], token.string


def habits(text: str) -> list[str]:
    return [
        f"{found[0]!r}: {instead}"
        for habit, instead in HABITS.items()
        for found in re.finditer(habit, text)
    ]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_is_easy_to_read(page: Path) -> None:
    found = prose(page.read_text("utf-8"))
    assert textstat.flesch_reading_ease("\n".join(found)) >= LEAST_EASE
    each = [one for paragraph in found for one in sentences(paragraph)]
    assert [one for one in each if len(one.split()) > MOST_WORDS] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_has_none_of_the_habits(page: Path) -> None:
    assert habits(page.read_text("utf-8")) == []


def test_texts_of_the_program_have_none_of_the_habits() -> None:
    assert [
        f"{path.relative_to(ROOT)}:{line}: {habit}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        for line, text in spoken(path)
        if " " in text
        for habit in habits(text)
    ] == []


def test_docstrings_and_comments_have_none_of_the_habits_but_may_leave_an_actor_open() -> None:
    assert [
        f"{path.relative_to(ROOT)}:{line}: {habit}"
        for path in sorted((ROOT / "src").rglob("*.py"))
        for line, text in remarks(path)
        for habit in habits(re.sub(NAMELESS, "one", text))
    ] == []


def test_the_habits_are_found() -> None:
    assert len(habits("An incident is told once a minute to somebody beside it.")) == 4
    assert habits("'5x' is no duration, and 190 samples a second are so many.")
    assert habits("There is no such file. It runs once per minute, as user `nobody`.") == []


def test_texts_of_the_pages_in_the_browser_have_none_of_the_habits() -> None:
    sources = [*(ROOT / "web" / "src").rglob("*.ts"), *(ROOT / "web" / "src").rglob("*.tsx")]
    text = re.compile(r'"[^"\n]*"|>[^<>{}\n]+<')
    assert [
        f"{path.relative_to(ROOT)}: {found[0][:80]}: {habit}"
        for path in sorted(sources)
        for line in path.read_text("utf-8").splitlines()
        if not line.lstrip().startswith(("//", "/*", "*", "import"))
        for found in text.finditer(line)
        for habit in habits(found[0])
    ] == []
