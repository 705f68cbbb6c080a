"""The options that start a recorder, made from the settings table, for `record` and `top`."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, TypeVar

import click

from necroscope.errors import UsageError
from necroscope.model.names import clean
from necroscope.settings import SETTINGS, Setting, Settings, parse, read_file, read_labels

Function = TypeVar("Function", bound=Callable[..., Any])
# What only who keeps a recording can do with it.
_KEEPING: Final = ("push", "verdicts")


def settings_options(function: Function) -> Function:
    """One option for each setting but those of pushing and judging, and `--settings` for a file of
    them; an option wins over the file.
    """
    function = _options(
        function, [setting for setting in SETTINGS if not setting.name.startswith(_KEEPING)]
    )
    option = click.option(
        "--settings",
        "settings_file",
        type=click.Path(path_type=Path),
        help="TOML file with these settings",
    )
    return option(function)


def keeping_options(function: Function) -> Function:
    """Only who keeps a recording has something to push and to judge."""
    return _options(
        function, [setting for setting in SETTINGS if setting.name.startswith(_KEEPING)]
    )


def _options(function: Function, settings: list[Setting]) -> Function:
    for setting in reversed(settings):
        name = f"--{setting.name}"
        text = f"{setting.help} [{setting.default or 'none'}]"
        function = click.option(
            name, setting.name.replace("-", "_"), metavar=setting.unit.upper(), help=text
        )(function)
    return function


def chosen_settings(settings_file: Path | None, options: dict[str, str | None]) -> Settings:
    values = read_file(settings_file) if settings_file is not None else {}
    values |= {
        name.replace("_", "-"): value for name, value in options.items() if value is not None
    }
    return parse(values)


def chosen_labels(settings_file: Path | None, labels: tuple[str, ...]) -> dict[str, str]:
    """Labels from the file's [labels] table and from `--label key=value`, as they may stand on a
    terminal.
    """
    chosen = read_labels(settings_file) if settings_file is not None else {}
    for label in labels:
        key, equals, value = label.partition("=")
        if not equals or not key:
            raise UsageError(
                f"label {label!r} is not key=value", "write it as --label zone=us-east-1a"
            )
        chosen[key] = value
    return {clean(key): clean(value) for key, value in chosen.items()}
