"""The scenarios there are, found by listing `incidents` and `healthy`: a new file is all that a new
scenario needs.
"""

import importlib
import inspect
import pkgutil
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from necroscope.errors import UsageError
from necroscope.lab import healthy, incidents
from necroscope.lab.scenario import Scenario

# Debian's package of a program whose package has another name.
_PACKAGES: Final = {
    "ip": "iproute2",
    "tc": "iproute2",
    "iptables-restore": "iptables",
    "gcc": "gcc libc6-dev",
    "unshare": "util-linux",
}


def scenarios() -> dict[str, type[Scenario]]:
    """By name, incidents first."""
    found = [
        cls
        for package in (incidents, healthy)
        for cls in _in_package(package.__path__, package.__name__)
    ]
    return {cls.name: cls for cls in found}


def find(name: str) -> type[Scenario]:
    known = scenarios()
    if name not in known:
        raise UsageError(f"there is no scenario {name!r}", "see: necroscope lab list")
    return known[name]


def missing_needs(scenario: type[Scenario]) -> list[str]:
    """Which of its programs and kernel files this machine lacks."""
    return [
        need
        for need in scenario.needs
        if not (Path(need).exists() if "/" in need else shutil.which(need))
    ]


def install_hint(missing: list[str]) -> str:
    programs = [_PACKAGES.get(need, need) for need in missing if "/" not in need]
    return (
        f"sudo apt-get install -y --no-install-recommends {' '.join(programs)}"
        if programs
        else "this kernel cannot do it"
    )


def _in_package(paths: Iterable[str], package: str) -> list[type[Scenario]]:
    names = sorted(module.name for module in pkgutil.iter_modules(paths))
    modules = [importlib.import_module(f"{package}.{name}") for name in names]
    classes = [
        cls
        for module in modules
        for _, cls in inspect.getmembers(module, inspect.isclass)
        if cls.__module__ == module.__name__
    ]
    # What several scenarios share has no name.
    return [cls for cls in classes if issubclass(cls, Scenario) and "name" in vars(cls)]
