"""The profile of all captures of an import: one native core, names for its frames, and the segment
whose stacks it numbers.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Final

from necroscope.interchange.perf_data.symbol_files import SymbolFiles
from necroscope.interchange.symbol_search import SymbolSearch
from necroscope.model.idle import IDLE_FUNCTIONS
from necroscope.profile.capture_core import CaptureCore
from necroscope.profile.core import CoreLimits
from necroscope.profile.frame_names import FrameNames
from necroscope.profile.kernel_symbols import KernelSymbols
from necroscope.symbols.demangle import demangle

# About 100 MB of stacks at most; a usual import needs a tenth of it.
LIMITS: Final = CoreLimits(
    256 << 20, 256 << 20, tenant_stacks=2_000_000, tenant_unnamed=500_000, most_stacks=2_000_000
)
# Functions kept from one segment to the next.
_MOST_FUNCTIONS: Final = 200_000
_TURN_RECORDS: Final = 1 << 14


class ImportProfile:
    """`numbering` changes whenever stacks and frames are numbered from 0 again."""

    def __init__(self, limits: CoreLimits = LIMITS, *, keeps_idle: bool = False) -> None:
        self.core = CaptureCore(
            limits, asks=False, idle_functions=() if keeps_idle else IDLE_FUNCTIONS
        )
        self.core.limit_turn(_TURN_RECORDS)
        self.names = FrameNames(self.core, _demangled)
        self.keeps_idle = keeps_idle
        self.numbering = 0
        # Read for one capture, and needed by the next one.
        self.kernel_symbols: dict[Path, KernelSymbols] = {}
        self.symbol_files: dict[tuple[SymbolSearch, bool], SymbolFiles] = {}
        self._segment: int | None = None

    def enter(self, segment: int) -> None:
        """Call it before stacks of a segment are numbered."""
        if self._segment not in (None, segment):
            if self.core.start_segment(_MOST_FUNCTIONS):
                self.names.forget()
            self.numbering += 1
        self._segment = segment

    def close(self) -> None:
        self.core.close()


def _demangled(symbols: Sequence[str]) -> list[str]:
    return [demangle(symbol.encode()) for symbol in symbols]
