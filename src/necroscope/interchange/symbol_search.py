"""Where a capture's addresses get names from: what the user gives, perf's build-id cache, this
machine if it is the same.
"""

import os
from dataclasses import dataclass, field
from pathlib import Path


def _default_cache() -> Path | None:
    home = os.environ.get("HOME")
    return Path(home) / ".debug" if home else None


@dataclass(frozen=True, slots=True)
class SymbolSearch:
    """`binaries` are directories searched by build id, then by path; `perf_maps` is one that holds
    perf-PID.map files.
    """

    kallsyms: Path | None = None
    binaries: tuple[Path, ...] = ()
    perf_maps: Path | None = None
    build_id_cache: Path | None = field(default_factory=_default_cache)
    root: Path = Path("/")

    def is_this_machine(self, host: str | None, kernel_release: str | None) -> bool:
        if not hasattr(os, "uname"):
            return False  # nor is there perf
        here = os.uname()
        return (host, kernel_release) == (here.nodename, here.release)
