"""Which modules have frames without a function, and how many samples that touches."""

from array import array
from typing import Final

from necroscope.interchange.capture import SampleBatch
from necroscope.profile.capture_core import MARK_SETS, CaptureCore
from necroscope.profile.frame_names import FetchedFrames

_MOST_MODULES: Final = 20
# Of very many modules the rest is one.
_REST: Final = 62


class UnnamedCount:
    """Counts samples by the set of modules that their stacks lack names of; a set is a number with
    a bit for each module.
    """

    def __init__(self, core: CaptureCore) -> None:
        self._core = core
        self._bits: dict[str, int] = {}
        self._of_frame = array("Q")
        self._sets = array("Q", bytes(8 * MARK_SETS))
        self._counts = array("Q", bytes(8 * MARK_SETS))

    def start_segment(self) -> None:
        del self._of_frame[:]

    def add(self, batch: SampleBatch, frames: FetchedFrames) -> None:
        """Samples, and the frames that came with them."""
        bits = self._bits
        for module in frames.unnamed_modules():
            self._of_frame.append(
                0 if module is None else 1 << min(bits.setdefault(module, len(bits)), _REST)
            )
        weights = None if batch.columns is None or not batch.is_weighted else bytes(batch.weight)
        self._core.count_marks(
            self._of_frame, bytes(batch.stack), weights, self._sets, self._counts
        )

    def notes(self) -> list[str]:
        names = [module for module, bit in self._bits.items() if bit < _REST] + ["more modules"] * (
            len(self._bits) > _REST
        )
        counted = [(self._sets[place], count) for place, count in enumerate(self._counts) if count]
        modules = {
            name: sum(samples for touched, samples in counted if touched >> bit & 1)
            for bit, name in enumerate(names)
        }
        found = sorted(
            ((samples, module) for module, samples in modules.items() if samples), reverse=True
        )
        notes = [
            f"functions of {module} could not be named: {samples} samples"
            for samples, module in found[:_MOST_MODULES]
        ]
        if len(found) > _MOST_MODULES:
            notes.append(
                f"functions of {len(found) - _MOST_MODULES} more modules could not be named"
            )
        return notes
