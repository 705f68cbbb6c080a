"""Writes the pages that repeat what the code says: docs/tables.md from the schema, settings.md from the settings, causes.md."""

import inspect
from collections.abc import Iterator
from pathlib import Path

from necroscope.analysis.cause import Cause
from necroscope.analysis.causes import all_causes
from necroscope.model.tables import SCHEMA_VERSION, TABLES, Column, Table
from necroscope.settings import SETTINGS, Setting

DOCS = Path(__file__).parent
WRITTEN_AS = {
    "bytes": "`500MB`, `4GiB`, or a number of bytes",
    "duration": "`250ms`, `90s`, `10m`, `2h`, `7d`",
    "hertz": "a whole number",
    "percent": "a whole number",
    "switch": "`on` or `off`",
    "text": "text",
}

TABLES_PAGE = """\
# The tables of a recording

<!-- Written by scripts/generate-docs. Change the code, not this page. -->

Schema version {version}. How they lie on the disk is in [format.md](format.md).

- Times are nanoseconds UTC on the recording's own time line, which never steps back ([why](architecture.md)).
- A row that says *since the row before* is a difference; its `elapsed_ns` is the denominator of every share.
- A value that this kernel does not give is null, never 0, and `gaps` says so once. A stretch without rows is in `gaps`.
- Names that came from the machine are printable: bytes that are not UTF-8 and control characters stand as `\\xNN`.
- A `category` is text with few different values, stored as a dictionary.

| table | what it holds |
| --- | --- |
{contents}

{sections}
"""

SETTINGS_PAGE = """\
# Settings of the recorder

<!-- Written by scripts/generate-docs. Change the code, not this page. -->

Each is an option of `necroscope record` (`--hz 97`) and a line of a settings file. An option wins over the file, the file
over the default.

| setting | default | written as | meaning |
| --- | --- | --- | --- |
{lines}

## A settings file

TOML, given by `necroscope record --settings FILE`. Every line may be left out; these are the defaults. Labels travel with the
recording and tell nodes apart later.

```toml
{example}

[labels]
zone = "eu-west-1b"
pool = "training"
```
"""


CAUSES_PAGE = """\
# Causes

<!-- Written by scripts/generate-docs. Change the code, not this page. -->

Every mechanism that a verdict can name. A cause is named only with its confirming signal; how the choice is made is in
[how-it-decides.md](how-it-decides.md). Each is one file in `src/necroscope/analysis/causes/`.

| cause | what happens |
| --- | --- |
{contents}

{sections}
"""


def causes_page() -> str:
    contents = (f"| [{cause.slug}](#{cause.slug}) | {_cell(cause.title)} |" for cause in all_causes())
    sections = ("\n".join(_cause_section(cause)) for cause in all_causes())
    return CAUSES_PAGE.format(contents="\n".join(contents), sections="\n\n".join(sections))


def _cause_section(cause: Cause) -> Iterator[str]:
    """The story at the top of its file, then what to do."""
    story = inspect.cleandoc(inspect.getmodule(cause.assess).__doc__ or "")
    yield from (f"## {cause.slug}", "")
    for line in filter(None, story.splitlines()):
        label, colon, rest = line.partition(": ")
        is_labelled = colon and label in ("Signature", "Confirming signal", "Source")
        yield from ("", f"**{label}:** {_text(rest)}") if is_labelled else (_text(line),)
    for title, items in (("What to do", cause.fix), ("How to see that it helped", cause.verify)):
        yield from ("", f"**{title}**", "", *(f"- {_text(item)}" for item in items))
    if cause.will_not_help:
        yield from (
            "",
            "**What will not help**",
            "",
            *(f"- {_text(item.what)}: {_text(item.why)}" for item in cause.will_not_help),
        )


def _text(line: str) -> str:
    return line.replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_") if "`" not in line else line


def tables_page() -> str:
    contents = (f"| [{table.name}](#{table.name}) | {_cell(table.meaning)} |" for table in TABLES.values())
    sections = ("\n".join(_section(table)) for table in TABLES.values())
    return TABLES_PAGE.format(version=SCHEMA_VERSION, contents="\n".join(contents), sections="\n\n".join(sections))


def settings_page() -> str:
    example = (_toml_line(setting) for setting in SETTINGS if setting.default)
    return SETTINGS_PAGE.format(lines="\n".join(map(_setting_line, SETTINGS)), example="\n".join(example))


def _section(table: Table) -> Iterator[str]:
    yield from (f"## {table.name}", "", f"{table.meaning[:1].upper()}{table.meaning[1:]}.", "", f"From: {table.origin}.", "")
    yield from ("| column | type | meaning |", "| --- | --- | --- |")
    yield from map(_column_line, table.columns)


def _column_line(column: Column) -> str:
    null = " or null" if column.nullable else ""
    return f"| `{column.name}` | {column.type.value}{null} | {_cell(column.meaning)} |"


def _setting_line(setting: Setting) -> str:
    default = f"`{setting.default}`" if setting.default else "none"
    return f"| `{setting.name}` | {default} | {WRITTEN_AS[setting.unit]} | {_cell(setting.help)} |"


def _toml_line(setting: Setting) -> str:
    value = setting.default if setting.default.isdecimal() else f'"{setting.default}"'
    return f"{setting.name} = {value}"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


PAGES = {"tables.md": tables_page, "settings.md": settings_page, "causes.md": causes_page}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), "utf-8")
