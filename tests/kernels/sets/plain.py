"""A recording of some seconds with a process that never sleeps: every table fills, and what is
missing is reported.

With cgroup v1 and without PSI the same, with a gap that names PSI and nothing else.
"""

import sys
from pathlib import Path

from tests.kernels.recorder import Recorder, info, spinner
from tests.kernels.sets.looking import GuestRecording, check

EVERY_TICK = {
    "samples",
    "stacks",
    "frames",
    "cores",
    "softirqs",
    "softirq_delay",
    "waits",
    "runqueue",
    "softnet",
    "pressure",
    "memory",
}
AT_TIMES = {"cgroups", "log", "anchors", "interrupts", "units"}


def inside(out: Path) -> None:
    with Recorder(out / "recording") as recorder:
        recorder.wait_for_flushes(2)
        with spinner(cpu=1) as busy:
            recorder.wait_for_flushes(3)
            busy.kill()
    check(info(out / "recording")["tables"]["samples"] > 0, "the recording opens in the guest")


def verify(out: Path, *, is_v1: bool, has_pressure: bool) -> None:
    recording = GuestRecording(out / "recording")
    missing = set() if has_pressure else {"pressure"}
    empty = (EVERY_TICK | AT_TIMES) - missing - recording.late_tables - recording.tables
    check(not empty, f"every table fills; these did not: {sorted(empty)}")
    check(recording.gap_tables <= missing, f"no gap that nobody made: {recording.gaps}")
    check(
        has_pressure or any("/proc/pressure" in cause for cause in recording.causes("pressure")),
        "what is missing is named",
    )
    spinning = [
        row for row in recording.rows("samples") if row["comm"] == "spinner-42" and row["cpu"] == 1
    ]
    check(len(spinning) >= 49, f"a process that never sleeps is sampled; {len(spinning)} samples")
    check({row["cgroup"] for row in spinning} != {None}, "its cgroup is known")
    named = [
        frame for frame in recording.frames() if frame["kind"] == "kernel" and frame["function"]
    ]
    check(len(named) > 20, f"functions of the kernel have names; {len(named)} do")
    controllers = {row["controller"] for row in recording.rows("cgroups")}
    check(
        ("memory" in controllers) if is_v1 else ("unified" in controllers),
        f"memory cgroups are counted: {controllers}",
    )
    check(
        {row["cpu"] for row in recording.rows("softirq_delay")}
        == {row["cpu"] for row in recording.rows("cores")},
        "BPF sees every core",
    )


if __name__ == "__main__":
    inside(Path(sys.argv[1]))
