"""What a power cut left of a recording: mounted as the next boot would, read in full, and recorded
on to.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any, Final

from tests.kernels.programs import run

from necroscope.errors import NecroscopeError
from necroscope.model.tables import TABLES
from necroscope.model.units import NS_PER_S
from necroscope.segment.recording import segment_paths
from necroscope.store.query import Store

_NECROSCOPE: Final = [sys.executable, "-m", "necroscope"]
_NEXT: Final = ["--for", "1s", "--free-floor", "0", "--verdicts", "off", "--facts", "0s", "--quiet"]
_STATES: Final = {".live": "recording", ".sealing": "sealing", ".removing": "dropping"}
# Two ticks and a little: a guest is emulated.
_SILENCE_NS: Final = 5 * NS_PER_S


@dataclass(frozen=True, slots=True)
class CutRecording:
    """`states` are those in which the cut found segments, `names` the starts of all that were
    there; `complaints` what a user would complain about.
    """

    last_ns: int
    names: frozenset[str]
    states: frozenset[str]
    complaints: list[str]


def opened(image: Path) -> CutRecording:
    with _mounted(image) as place:
        recording = place / "recording"
        states = {
            state
            for entry in recording.iterdir()
            for suffix, state in _STATES.items()
            if entry.name.endswith(suffix)
        }
        if sum(entry.name.endswith(".live") for entry in recording.iterdir()) > 1:
            states.add("sealing")
        try:
            return _questioned(recording, frozenset(states))
        except NecroscopeError as error:
            return CutRecording(
                0, frozenset(), frozenset(states), [f"it does not open: {error.facts}"]
            )


def _questioned(recording: Path, states: frozenset[str]) -> CutRecording:
    store = Store.open(recording)
    for table in TABLES:
        store.rows(table, 0, 1 << 62)
    cores = sorted(set(store.rows("cores", 0, 1 << 62).column("time").to_pylist()))
    complaints = [
        f"damage: {gap.cause}"
        for gap in store.info().gaps
        if "damage" in gap.cause or "segment " in gap.cause
    ]
    last_ns = cores[-1]
    names = frozenset(path.name.removesuffix(".live") for path in segment_paths(recording))
    complaints += _went_on(recording, last_ns)
    complaints += _unexplained(cores, _gaps(recording))
    return CutRecording(last_ns, names, states, complaints)


def _went_on(recording: Path, last_ns: int) -> list[str]:
    """The next recorder takes it over, seals what was left and says what was lost."""
    command = [*_NECROSCOPE, "record", "--dir", str(recording), *_NEXT]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    if ended.returncode:
        return [f"the next recorder failed: {ended.stderr.strip()[-300:]}"]
    leftovers = [entry.name for entry in recording.iterdir() if entry.suffix in _STATES]
    gaps = [gap for gap in _gaps(recording) if gap["table"] == "*" and "cut" in gap["cause"]]
    found = [gap for gap in gaps if gap["from_ns"] <= last_ns + NS_PER_S]
    return [f"left behind: {name}" for name in leftovers] + ([] if found else ["no gap tells it"])


def _gaps(recording: Path) -> list[dict[str, Any]]:
    return [
        {"table": gap.table, "from_ns": gap.from_ns, "to_ns": gap.to_ns, "cause": gap.cause}
        for gap in Store.open(recording).info().gaps
    ]


def _unexplained(times_ns: list[int], gaps: list[dict[str, Any]]) -> list[str]:
    """Stretches without rows of `cores` that no gap covers."""
    return [
        f"{(after - before) / NS_PER_S:.1f} s without rows and without a gap"
        for before, after in pairwise(times_ns)
        if after - before > _SILENCE_NS
        and not any(
            gap["table"] in ("*", "cores") and gap["from_ns"] <= after and gap["to_ns"] >= before
            for gap in gaps
        )
    ]


@contextmanager
def _mounted(image: Path) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="necroscope-cut-") as place:
        run(["mount", "-o", "loop", "-t", "ext4", str(image), place])
        try:
            yield Path(place)
        finally:
            run(["umount", place])
