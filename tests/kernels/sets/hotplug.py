"""A core is unplugged while the recorder runs, and plugged in again: a gap with its cause, then
samples of that core again.
"""

import sys
from pathlib import Path

from tests.kernels.recorder import Recorder, spinner
from tests.kernels.sets.looking import GuestRecording, check

CORE = 1
SWITCH = Path(f"/sys/devices/system/cpu/cpu{CORE}/online")


def inside(out: Path) -> None:
    with Recorder(out / "recording") as recorder:
        SWITCH.write_text("0")
        recorder.wait_for_flushes(2)
        SWITCH.write_text("1")
        with spinner(CORE) as busy:
            recorder.wait_for_flushes(3)
            busy.kill()


def verify(out: Path) -> None:
    recording = GuestRecording(out / "recording")
    for table in ("cores", "samples"):
        causes = [(cause, cpu) for name, cause, cpu in recording.gaps if name == table]
        check(
            (f"cpu {CORE} was offline", CORE) in causes, f"{table}: the absence is a gap: {causes}"
        )
    end_ns = max(
        row["end"]
        for row in recording.rows("gaps")
        if row["table"] == "samples" and row["cpu"] == CORE
    )
    after = [
        row
        for row in recording.rows("samples", cpus=[CORE])
        if row["time"] > end_ns and row["comm"] == "spinner-42"
    ]
    check(len(after) > 49, f"the core is sampled again; {len(after)} samples after it came back")
    others = {row["cpu"] for row in recording.rows("gaps") if row["cpu"] is not None}
    check(others == {CORE}, f"no other core has a gap: {others}")


if __name__ == "__main__":
    inside(Path(sys.argv[1]))
