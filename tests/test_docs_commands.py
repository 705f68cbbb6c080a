"""Every command in the docs exists with its options, and every `console` block is run and prints
what the page shows.

A line `...` in a block stands for any number of lines. A page says which recording a name stands for:
`<!-- tests: first is tests/data/lab/irq-core-collision -->`.
"""

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from necroscope.cli.lab import label_to_text
from necroscope.cli.main import necroscope
from necroscope.lab.label import read_label

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
STANDS_FOR = re.compile(r"<!-- tests: (\S+) is (\S+) -->")
BLOCK = re.compile(r"^( *)```(\w*)\n(.*?)^\1```$", re.DOTALL | re.MULTILINE)
SESSIONS = [page for page in PAGES if "```console\n" in page.read_text("utf-8")]


def blocks(page: Path) -> Iterator[tuple[str, str]]:
    """(language, text) of each fenced block."""
    for _, language, text in BLOCK.findall(page.read_text("utf-8")):
        yield language, text


def sessions(page: Path) -> Iterator[tuple[str, list[str]]]:
    """(command, the lines that it prints) of each command in the `console` blocks."""
    for language, text in blocks(page):
        if language != "console":
            continue
        for part in re.split(r"^\$ ", text, flags=re.MULTILINE)[1:]:
            command, *printed = part.rstrip("\n").split("\n")
            yield command, printed


def commands(page: Path) -> Iterator[list[str]]:
    """The words of each command line in a block, from `necroscope` on."""
    for language, text in blocks(page):
        if language in ("python", "json", "yaml", "toml", "sql"):
            continue
        for line in text.replace("\\\n", " ").split("\n"):
            # What a page says of a command stands after two blanks or a `#`.
            found = re.match(r" *(?:\$ )?(?:sudo )?(necroscope [^|>;&]*?)(?:  |$|[|>;&])", line)
            if found:
                yield shlex.split(found[1], comments=True)[1:]


def find_command(words: list[str]) -> tuple[click.Command, list[str]]:
    """The command that the first words name, and the rest of the words."""
    command: click.Command = necroscope
    while words and isinstance(command, click.Group):
        name, *words = words
        found = command.get_command(click.Context(command), name)
        assert found is not None, f"there is no command {name}"
        command = found
    return command, words


def matches(expected: list[str], printed: list[str]) -> bool:
    """Whether the page's lines are the printed ones, where `...` is any number of them."""
    pattern = "".join(
        r"(?:.*\n)*?" if line.strip() == "..." else re.escape(line.rstrip()) + " *\n"
        for line in expected
    )
    return re.fullmatch(pattern, "".join(f"{line}\n" for line in printed)) is not None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_in_blocks_exist_with_their_options(page: Path) -> None:
    unknown = []
    for words in commands(page):
        command, rest = find_command(words)
        before_job = rest[: rest.index("--")] if "--" in rest else rest
        given = {word.split("=")[0] for word in before_job if re.match(r"--?[a-z]", word)}
        given -= {word for word in before_job if re.fullmatch(r"-\d+\w", word)}
        known = {name for each in command.params for name in (*each.opts, *each.secondary_opts)}
        unknown += [f"{' '.join(words)}: {name}" for name in given - known - {"-h", "--help"}]
    assert unknown == []


@pytest.mark.parametrize("page", SESSIONS, ids=lambda page: page.name)
def test_commands_print_what_the_page_shows(page: Path, tmp_path: Path) -> None:
    for name, recording in STANDS_FOR.findall(page.read_text("utf-8")):
        shutil.copytree(ROOT / recording, tmp_path / name)
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "COLUMNS": "100",
        "TMPDIR": str(tmp_path),
    }
    for command, expected in sessions(page):
        done = subprocess.run(
            command, shell=True, cwd=tmp_path, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=100,
        )  # fmt: skip
        printed = [line.rstrip() for line in done.stdout.rstrip("\n").split("\n")]
        assert done.returncode in (0, 1), done.stdout
        assert matches(expected, printed), f"$ {command}\n{done.stdout}"


def test_a_line_of_dots_stands_for_any_number_of_lines() -> None:
    assert matches(["a", "...", "d"], ["a", "b", "c", "d"])
    assert matches(["a", "...", "d"], ["a", "d"])
    assert not matches(["a", "...", "d"], ["a", "b", "d", "e"])
    assert not matches(["a"], ["b"])


def test_the_tutorials_lab_run_prints_what_the_lab_prints() -> None:
    page = ROOT / "docs" / "tutorial.md"
    text = page.read_text("utf-8")
    ((name, recording),) = STANDS_FOR.findall(text)
    label = read_label(ROOT / recording)
    assert label_to_text(label, Path(name)) in text
