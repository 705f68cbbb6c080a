"""Modules that a library loads where they are installed, and that this process has no use for."""

import sys
from typing import Final

_unwanted: Final[set[str]] = set()


class _NotInstalled:
    """A finder in front of the others: for it, these modules are not installed. None in
    `sys.modules` would not do: compiled code takes it for the module.
    """

    @staticmethod
    def find_spec(name: str, _path: object = None, _target: object = None) -> None:
        if name in _unwanted:
            raise ModuleNotFoundError(name=name)


def leave_out(*names: str) -> None:
    """From now on they are not found, unless they are loaded already.

    pyarrow asks for pandas when it first sees a list (0.2 s of CPU, 40 MB), and loads numpy if it
    can (0.06 s, 13 MB).
    """
    _unwanted.update(names)
    if _NotInstalled not in sys.meta_path:
        sys.meta_path.insert(0, _NotInstalled)
