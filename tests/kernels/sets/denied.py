"""Without BPF, without tracefs, without what Debian wants for perf: each costs only itself, and the
gap says what is missing.
"""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from tests.integration import private_view
from tests.kernels.recorder import record
from tests.kernels.sets.looking import GuestRecording, check

TRACEFS, DEBUGFS = Path("/sys/kernel/tracing"), Path("/sys/kernel/debug")
ALWAYS = {
    "cores",
    "softirqs",
    "runqueue",
    "softnet",
    "memory",
    "cgroups",
    "samples",
    "stacks",
    "frames",
    "log",
}
# Seen by BPF programs; and what asks for CAP_SYS_ADMIN, which both denials take: the count of BPF
# maps.
BY_BPF = {"softirq_delay", "waits", "run_delay", "late_beats"}
WITHOUT_ADMIN = {"populations"}


def without_bpf() -> None:
    private_view.own_mounts()
    if not (TRACEFS / "events").is_dir():
        private_view.mount("tracefs", TRACEFS)
    private_view.drop_capabilities(private_view.CAP_SYS_ADMIN, private_view.CAP_BPF)


def without_tracefs() -> None:
    private_view.own_mounts()
    for mounted in (TRACEFS, DEBUGFS):
        private_view.unmount(mounted)
    private_view.drop_capabilities(private_view.CAP_SYS_ADMIN)


DENIALS: dict[str, Callable[[], None]] = {"bpf": without_bpf, "tracefs": without_tracefs}
PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")


def inside(out: Path) -> None:
    subprocess.run(
        ["mount", "-t", "tracefs", "tracefs", str(TRACEFS)], capture_output=True, check=False
    )
    level = PARANOID.read_text().strip()
    (out / "paranoid.txt").write_text(level)
    if int(level) >= 3:
        record(out / "perf", flushes=1, deny=without_tracefs)
        PARANOID.write_text("2")
    for name, deny in DENIALS.items():
        record(out / name, flushes=1, deny=deny)


def verify(out: Path) -> None:
    without = {name: GuestRecording(out / name) for name in DENIALS}
    for name, found in without.items():
        check(
            not ALWAYS - found.tables,
            f"without {name} the rest is recorded; missing: {sorted(ALWAYS - found.tables)}",
        )
    bpf, tracefs = without["bpf"], without["tracefs"]
    check(
        bpf.gap_tables == BY_BPF | WITHOUT_ADMIN,
        f"refused BPF costs what BPF sees and nothing else: {bpf.gaps}",
    )
    for table in BY_BPF:
        check(
            any("CAP_BPF" in cause for cause in bpf.causes(table)),
            f"the capability is named: {bpf.causes(table)}",
        )
    check(
        tracefs.gap_tables == {"cgroup_ledger"} | WITHOUT_ADMIN,
        f"absent tracefs costs the ledger only: {tracefs.gaps}",
    )
    # On a quick host no task of a quiet guest waits for as long as a row of `waits` takes.
    check({"softirq_delay", "run_delay"} <= tracefs.tables, "BPF does without tracefs")
    if (out / "perf").exists():
        causes = GuestRecording(out / "perf").causes("samples")
        check(
            bool(causes) and all("CAP_PERFMON is not enough" in cause for cause in causes),
            f"perf's own limit is named: {causes}",
        )


if __name__ == "__main__":
    inside(Path(sys.argv[1]))
