"""necroscope: a flight recorder for Linux nodes that names what starved a core, and who did it.

The names in `__all__` are the Python API, which docs/python-api.md describes. They are loaded when
first used, so that importing the package costs the recorder nothing.
"""

TYPE_CHECKING = False  # loading `typing` for it takes longer than all else here
if TYPE_CHECKING:
    from necroscope.api import (
        FlameGraph,
        Incident,
        NecroscopeError,
        NodeRecording,
        Verdict,
        open,  # noqa: A004 - always written necroscope.open, as gzip.open is
    )

__all__ = [
    "FlameGraph",
    "Incident",
    "NecroscopeError",
    "NodeRecording",
    "Verdict",
    "__version__",
    "open",
]
__version__ = "0.2.0"


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module  # noqa: PLC0415

    found: object = getattr(import_module("necroscope.api"), name)
    return found


def __dir__() -> list[str]:
    return __all__
