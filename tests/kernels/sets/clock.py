"""The clock is stepped by an hour, forth and back, while the recorder runs: order stays, and the
steps are reported.
"""

import itertools
import sys
import time
from pathlib import Path

from tests.kernels.recorder import Recorder, spinner
from tests.kernels.sets.looking import GuestRecording, check

HOUR_S = 3600
NS_PER_S = 1_000_000_000


def inside(out: Path) -> None:
    with spinner(cpu=1) as busy, Recorder(out / "recording") as recorder:
        for step_s in (HOUR_S, -HOUR_S):
            time.clock_settime(time.CLOCK_REALTIME, time.time() + step_s)
            recorder.wait_for_flushes(2)
        busy.kill()


def verify(out: Path) -> None:
    recording = GuestRecording(out / "recording")
    said = [row["message"] for row in recording.rows("events") if row["kind"] == "clock_step"]
    directions = [next(word for word in ("forward", "back") if word in message) for message in said]
    check(directions == ["forward", "back"], f"each step is an event: {said}")
    anchors = sorted(recording.rows("anchors"), key=lambda row: row["monotonic_ns"])
    check(
        [row["time"] for row in anchors] == sorted(row["time"] for row in anchors),
        "the time line never steps back",
    )
    rows = recording.rows("cores", cpus=[0])
    check(max(row["elapsed_ns"] for row in rows) < 60 * NS_PER_S, "no row is an hour long")
    jumps = [
        later["time"] - earlier["time"] - later["elapsed_ns"]
        for earlier, later in itertools.pairwise(rows)
    ]
    large = [round(jump / (HOUR_S * NS_PER_S)) for jump in jumps if abs(jump) > NS_PER_S]
    check(large == [1], f"the time line has one jump, of an hour: {large}")
    skipped = [
        row
        for row in recording.rows("gaps")
        if row["table"] == "*" and "stepped forward by 1 h" in row["cause"]
    ]
    check(len(skipped) == 1, "what the step skips is a gap")


if __name__ == "__main__":
    inside(Path(sys.argv[1]))
