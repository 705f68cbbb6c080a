"""Writes the pages that repeat what the code says: tables.md and settings.md from their tables,
causes.md, commands.md, top.md.
"""

import inspect
import re
from collections.abc import Iterator
from copy import copy
from pathlib import Path

import click

from necroscope.analysis.cause import Cause
from necroscope.analysis.causes import all_causes
from necroscope.cli.main import necroscope
from necroscope.model.tables import SCHEMA_VERSION, TABLES, Column, Table
from necroscope.settings import SETTINGS, Setting
from necroscope.views.tui import help_page

DOCS = Path(__file__).parent
WRITTEN_AS = {
    "bytes": "`500MB`, `4GiB`, or a number of bytes",
    "duration": "`250ms`, `90s`, `10m`, `2h`, `7d`",
    "hertz": "a whole number",
    "percent": "a whole number",
    "count": "a whole number",
    "switch": "`on` or `off`",
    "text": "text",
}

TABLES_PAGE = """\
# The tables of a recording

<!-- Written by scripts/generate-docs. Change the code, not this page. -->

Schema version {version}. How they lie on the disk is in [format.md](format.md).

- Times are nanoseconds UTC on the recording's own time line, which never steps back ([why](decisions.md)).
- A row that says *since the row before* is a difference; its `elapsed_ns` is the denominator of every share.
- A value that this kernel does not give is null, never 0, and `gaps` says so once. A stretch without rows is in `gaps`.
- Names that came from the machine are printable: bytes that are not UTF-8 and control characters stand as `\\xNN`.
- A `category` is text with few different values, stored as a dictionary.

| table | what it holds |
| --- | --- |
{contents}

{sections}
"""

COMMANDS_PAGE = """\
# Commands

<!-- Written by scripts/generate-docs. Change the code, not this page. -->

What each command prints with `--help`. Which one you need: [which-command.md](which-command.md). The settings that `record`, `top` and `check`
share are in [settings.md](settings.md) and left out here. Commands that print data have `--json`. Errors are two lines on standard error,
`error:` with the facts and `hint:` with a way out.

| command | what it is for |
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

## Your own kernel log patterns

A TOML file, given by `--patterns FILE`. Lines of the kernel log that match become events, as those do that necroscope knows.

```toml
[[pattern]]
id = "acme.link"                 # names it in the column `pattern`; small letters, digits, dots, dashes, underscores
kind = "fabric_error"            # the kind of event it makes
regex = 'acme (?P<device>\\S+): fabric error on port (?P<port>\\d+)'
contains = "fabric error"        # may be left out: only lines with this text are tried, which is many times cheaper
alarm = true                     # may be left out: a trigger, as a reset is; it pins the minutes around it
```

Write the regex from the start of the record: further on stand names that any user may choose, so an event that matches later is
marked as not written by the kernel.

Groups named `cpu`, `device`, `queue`, `pid` and `comm` fill those columns, all others go into `fields`. Regexes are those of
Python, which cannot be interrupted: lines are cut at 4,096 characters, which keeps an honest one quick, but nested repeats like
`(a+)+b` can hold the recorder for long. Write none.

## Facts of your own

A TOML file, given by `--own-facts FILE`. What it names becomes [facts](tables.md) like the others, hourly: `fleet why`, `fleet diff`,
`fleet change` and `necroscope diff` compare them between nodes.

```toml
[[fact]]
name = "bootstrap-url"                                   # the fact is own:bootstrap-url
command = ["/usr/local/bin/bootstrap", "--print-url"]    # its output; no shell, at most 5 s and 64 KiB

[[fact]]
name = "agent-config"
file = "/etc/agent/config.json"                          # its text; with sha256 = true only the hash
sha256 = true

[environment]
variables = ["MALLOC_CONF", "LD_PRELOAD"]                # of running processes, by program; these and no others
```

Output is cut, and cleaned of control characters. A command that fails, hangs or prints too much is a gap with its name, and the other facts are
there all the same. All commands together have 30 s. They run with the rights of the child that collects facts, which on a node is close to root:
a file that others than its owner can write is refused.
"""


TOP_PAGE = """\
# The live view

<!-- Written by scripts/generate-docs. Change the code, not this page. -->

`necroscope top` shows every core now: its mode, who is on it and in which kernel function, softirq delay, zombies, events. It is
the recorder into memory: nothing is written to disk, the last ten minutes can be looked back at, and it needs the same
[privileges](privileges.md) and takes the same [settings](settings.md). `necroscope top --once` looks for two seconds, prints and
ends; `--json` is the same for programs. `--recording DIR` adds
what the recorder of this node has found of late.

## Keys

| key | does |
| --- | --- |
{keys}

## Signs

| sign | means |
| --- | --- |
{signs}
"""


CAUSES_PAGE = """\
# Causes

<!-- Written by scripts/generate-docs. Change the code, not this page. -->

Every mechanism that a verdict can name. A cause is named only with its confirming signal; how the choice is made is in
[how-it-decides.md](how-it-decides.md). Each is one file in `src/necroscope/analysis/causes/`.

Every number that decides is listed with its reason. A share is of what ran on the core in the incident. `least` is where a cause
begins to be weighed, `confirmed` where its share is large enough; `necroscope lab score --vary` shows how much each number matters.

| cause | what happens |
| --- | --- |
{contents}

{sections}
"""


def causes_page() -> str:
    contents = (
        f"| [{cause.slug}](#{cause.slug}) | {_cell(cause.title)} |" for cause in all_causes()
    )
    sections = ("\n".join(_cause_section(cause)) for cause in all_causes())
    return CAUSES_PAGE.format(contents="\n".join(contents), sections="\n\n".join(sections))


def _cause_section(cause: Cause) -> Iterator[str]:
    """The story at the top of its file, then what to do."""
    story = " ".join((inspect.getmodule(cause.assess).__doc__ or "").split())
    first, *parts = re.split(r"(Signature|Confirming signal|Source): ", story)
    yield from (f"## {cause.slug}", "", _text(first.strip()))
    for label, text in zip(parts[::2], parts[1::2], strict=True):
        yield from ("", f"**{label}:** {_text(text.strip())}")
    limits = [
        f"| {_text(name.replace('_', ' '))} | {_amount(name, limit.value)} | {_text(limit.reason)} |"
        for name, limit in cause.limits
    ]
    if limits:
        yield from ("", "| threshold | value | reason |", "| --- | --- | --- |", *limits)
    for title, items in (("What to do", cause.fix), ("How to see that it helped", cause.verify)):
        yield from ("", f"**{title}**", "", *(f"- {_text(item)}" for item in items))
    if cause.will_not_help:
        yield from (
            "",
            "**What will not help**",
            "",
            *(f"- {_text(item.what)}: {_text(item.why)}" for item in cause.will_not_help),
        )


def _amount(name: str, value: float) -> str:
    """With the unit that the name ends with; a share where it has none."""
    if name.endswith("_per_s"):
        return f"{value:,.0f} per second"
    if name.endswith("_s"):
        return f"{value:g} s"
    return f"{value:.0%}" if value < 1 else f"{value:,.0f}"


def _text(line: str) -> str:
    return (
        line.replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")
        if "`" not in line
        else line
    )


def tables_page() -> str:
    contents = (
        f"| [{table.name}](#{table.name}) | {_cell(table.meaning)} |" for table in TABLES.values()
    )
    sections = ("\n".join(_section(table)) for table in TABLES.values())
    return TABLES_PAGE.format(
        version=SCHEMA_VERSION, contents="\n".join(contents), sections="\n\n".join(sections)
    )


def settings_page() -> str:
    example = (_toml_line(setting) for setting in SETTINGS if setting.default)
    return SETTINGS_PAGE.format(
        lines="\n".join(map(_setting_line, SETTINGS)), example="\n".join(example)
    )


def top_page() -> str:
    keys, signs = (
        "\n".join(f"| `{_cell(name)}` | {_cell(text)} |" for name, text in entries)
        for entries in (help_page.KEYS, help_page.SIGNS)
    )
    return TOP_PAGE.format(keys=keys, signs=signs)


def commands_page() -> str:
    commands = list(_commands(necroscope, "necroscope"))
    contents = (
        f"| [{path}](#{path.replace(' ', '-')}) | {_cell(_first_sentence(command))} |"
        for path, command in commands
    )
    sections = (f"## {path}\n\n```\n{_help(path, command)}\n```" for path, command in commands)
    return COMMANDS_PAGE.format(contents="\n".join(contents), sections="\n\n".join(sections))


def _commands(group: click.Group, path: str) -> Iterator[tuple[str, click.Command]]:
    """Every command that does something, with the words that call it."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from _commands(command, f"{path} {name}")
        else:
            yield f"{path} {name}", command


def _first_sentence(command: click.Command) -> str:
    text = " ".join(inspect.cleandoc(command.help or "").split("\n\n")[0].split())
    return re.split(r"(?<=[.?]) ", text)[0]


def _help(path: str, command: click.Command) -> str:
    shared = {f"--{setting.name}" for setting in SETTINGS}
    shown = [each for each in command.params if shared.isdisjoint(each.opts)]
    # A copy without the option --help that click keeps: a command that ran without `necroscope`
    # before it in this process has no -h there.
    asked = copy(command)
    asked.params, asked._help_option = shown, None  # noqa: SLF001
    context = click.Context(
        asked, info_name=path, terminal_width=100, help_option_names=["-h", "--help"]
    )
    return asked.get_help(context).strip()


def _cadence(table: Table) -> str:
    return f" Read every {table.period_s:g} s." if table.period_s != 1.0 else ""


def _section(table: Table) -> Iterator[str]:
    yield from (
        f"## {table.name}",
        "",
        f"{table.meaning[:1].upper()}{table.meaning[1:]}.",
        "",
        f"From: {table.origin}.{_cadence(table)}",
        "",
    )
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


PAGES = {
    "tables.md": tables_page,
    "settings.md": settings_page,
    "causes.md": causes_page,
    "commands.md": commands_page,
    "top.md": top_page,
}

if __name__ == "__main__":
    for name, page in PAGES.items():
        (DOCS / name).write_text(page(), "utf-8")
