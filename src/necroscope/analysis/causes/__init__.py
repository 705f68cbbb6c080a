"""One file for each cause, found by listing this package. A file opens with its signature, its
confirming signal and its source.

To add one: a file here with a `CAUSE`, a lab scenario, and a test that draws it (see
docs/how-it-decides.md).
"""

from functools import cache
from importlib import import_module
from pkgutil import iter_modules

from necroscope.analysis.cause import Cause


@cache
def all_causes() -> tuple[Cause, ...]:
    """In order of their slugs."""
    found = [import_module(f"{__name__}.{module.name}").CAUSE for module in iter_modules(__path__)]
    return tuple(sorted(found, key=lambda cause: cause.slug))
