"""Cuts the power of a guest that records, again and again, and opens what is left on its disk:
`scripts/test-power-cuts`.

One boot, kept in the middle of its work; each cycle goes on from there for a random time and is
then killed. The disk loses an arbitrary part of what was not flushed. Of each cycle the log of
writes gives more cuts, at other moments, without emulating anything again.
"""

# ruff: noqa: T201 - what it has to say goes to a terminal

import argparse
import random
import statistics
import sys
import tempfile
import time
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from tests.kernels import cut_guest
from tests.kernels.cut_recording import CutRecording, opened
from tests.kernels.failure import CannotTestError
from tests.kernels.image import ROOT, Workshop
from tests.kernels.kernels import SMOKE, kernel_named

LONGEST_LOSS_S = 5.0
SHORTEST_CYCLE_S, LONGEST_CYCLE_S = 1.0, 20.0


@dataclass(frozen=True, slots=True)
class Cut:
    """`lost_s` is by the guest's own clock, from the last row that is left until the cut."""

    kind: str
    lost_s: float
    found: CutRecording

    @property
    def complaints(self) -> list[str]:
        late = self.lost_s > LONGEST_LOSS_S
        return [*([f"{self.lost_s:.1f} s are lost"] if late else []), *self.found.complaints]


def main() -> int:
    chosen = _arguments()
    random_numbers = random.Random(chosen.seed)
    workshop = Workshop(chosen.dir.resolve())
    kernel = kernel_named(SMOKE)
    try:
        _say(f"booting {kernel.name} once, until its recorder seals and drops segments")
        snapshot = cut_guest.take_snapshot(
            workshop.bootable(kernel),
            workshop.root_image(kernel.architecture),
            workshop.wheel(kernel.architecture),
            chosen.dir / "cuts",
        )
        before = _opened(snapshot.disk).names
        cuts: list[Cut] = []
        for number in range(chosen.cycles):
            cut, *replayed = _cycle(snapshot, random_numbers, chosen.replays)
            cuts += [cut, *replayed]
            _say(f"cycle {number + 1} of {chosen.cycles}: {_describe(cut)}")
    except CannotTestError as error:
        print(f"error: {error.facts}\nhint: {error.hint or 'see docs/kernels.md'}", file=sys.stderr)
        return 2
    return _report(cuts, before)


def _cycle(snapshot: cut_guest.Snapshot, chosen: random.Random, replays: int) -> list[Cut]:
    guest = cut_guest.resume(snapshot)
    time.sleep(chosen.uniform(SHORTEST_CYCLE_S, LONGEST_CYCLE_S))
    guest.kill()
    log = guest.disk.log
    cuts = [_cut("emulator killed", guest, len(log), guest.beats[-1][1], chosen)]
    for _ in range(replays if len(log) > 1 else 0):
        end = chosen.randint(len(log) // 10, len(log) - 1)
        cuts.append(_cut("replayed", guest, end, guest.time_at_ns(log[end].at_s), chosen))
    return cuts


def _cut(kind: str, guest: cut_guest.CutGuest, end: int, cut_ns: int, chosen: random.Random) -> Cut:
    found = _opened(guest.disk.after_cut(end, chosen))
    return Cut(kind, max(0.0, (cut_ns - found.last_ns) / 1e9), found)


def _opened(disk: bytes) -> CutRecording:
    with tempfile.NamedTemporaryFile(prefix="necroscope-cut-", suffix=".ext4") as image:
        image.write(disk)
        image.flush()
        return opened(Path(image.name))


def _describe(cut: Cut) -> str:
    return f"{cut.lost_s:.1f} s lost, {len(cut.found.names)} segments; " + (
        ", ".join(cut.complaints) or "whole"
    )


def _report(cuts: list[Cut], before: frozenset[str]) -> int:
    broken = [cut for cut in cuts if cut.complaints]
    print("| power cuts | count | opened | lost s, median and most | during |")
    print("| --- | --- | --- | --- | --- |")
    for kind in dict.fromkeys(cut.kind for cut in cuts):
        of_kind = [cut for cut in cuts if cut.kind == kind]
        lost = [cut.lost_s for cut in of_kind]
        during = Counter(state for cut in of_kind for state in cut.found.states)
        during["after dropping"] = sum(not before <= cut.found.names for cut in of_kind)
        print(
            f"| {kind} | {len(of_kind)} | {sum(not cut.complaints for cut in of_kind)}"
            f" | {statistics.median(lost):.1f}, {max(lost):.1f}"
            f" | {', '.join(f'{name} {count}' for name, count in sorted(during.items()))} |"
        )
    for cut in broken:
        print(f"FAILED {cut.kind}: {'; '.join(cut.complaints)}")
    return 1 if broken or not cuts else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/test-power-cuts", description=__doc__)
    parser.add_argument("--cycles", type=int, default=30, help="how often the emulator is killed")
    parser.add_argument(
        "--replays", type=int, default=4, help="further cuts from the writes of each cycle"
    )
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--dir", type=Path, default=ROOT / "build/kernels", help="images [build/kernels]"
    )
    return parser.parse_args()


def _say(text: str) -> None:
    print(f"test-power-cuts: {time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
