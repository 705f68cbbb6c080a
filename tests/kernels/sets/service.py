"""The recorder as the unit that we ship, under the guest's own systemd: its few rights are enough
for every table.

The user and the sysctl are set as docs/deploy.md tells a Debian user to, the quota because an
emulated processor is slow.
"""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

from tests.kernels.sets import plain, wire
from tests.kernels.sets.looking import GuestRecording, check

NAME = "necroscope"
FILE = "deploy/necroscope.service"
_PARANOID = Path("/proc/sys/kernel/perf_event_paranoid")
_STATE = Path("/var/lib/private", NAME)
_PROGRAM = Path("/opt/necroscope/bin/necroscope")
_LONGEST_S, _ROWS_S = 120, 20
_PROPERTIES = ("Result", "NRestarts", "User", "MemoryPeak", "ActiveState")


def inside(out: Path) -> None:
    program = shutil.which(NAME)
    if program is None:
        raise SystemExit("the wheel has no program")
    _PROGRAM.parent.mkdir(parents=True)
    _PROGRAM.symlink_to(program)
    shutil.copy(FILE, "/etc/systemd/system")
    drop_in = Path(f"/etc/systemd/system/{NAME}.service.d/slow.conf")
    drop_in.parent.mkdir()
    drop_in.write_text("[Service]\nCPUQuota=\nTimeoutStopSec=120s\n")
    subprocess.run(["systemd-sysusers", "--inline", f'u {NAME} - "flight recorder"'], check=True)
    _PARANOID.write_text(str(min(2, int(_PARANOID.read_text()))))
    wire.systemctl("daemon-reload")
    wire.systemctl("start", NAME)
    deadline_s = time.monotonic() + _LONGEST_S
    while not any(_STATE.glob("*.live/*")) and time.monotonic() < deadline_s:
        time.sleep(0.5)
    time.sleep(_ROWS_S)
    running = _unit_properties()
    wire.systemctl("stop", NAME)
    (out / "systemd.json").write_text(
        json.dumps({"running": running, "stopped": _unit_properties()})
    )
    journal = subprocess.run(
        ["journalctl", "--no-pager", "--boot"], stdout=subprocess.PIPE, check=False
    ).stdout
    (out / "journal.txt").write_bytes(journal)
    shutil.copytree(_STATE, out / "recording")


def _unit_properties() -> dict[str, str]:
    words = ["systemctl", "show", NAME, f"--property={','.join(_PROPERTIES)}"]
    lines = subprocess.run(words, stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()
    return dict(line.split("=", 1) for line in lines)


def verify(out: Path) -> str:
    systemd = json.loads((out / "systemd.json").read_text())
    journal = (out / "journal.txt").read_text(errors="replace")
    check(systemd["running"]["ActiveState"] == "active", f"it runs: {systemd}; {journal[-600:]}")
    check(
        systemd["stopped"]["Result"] == "success", f"it ends as asked: {systemd}; {journal[-600:]}"
    )
    check(systemd["stopped"]["NRestarts"] == "0", f"it did not crash: {systemd}")
    recording = GuestRecording(out / "recording")
    empty = (plain.EVERY_TICK | plain.AT_TIMES) - recording.late_tables - recording.tables
    check(
        not empty,
        f"its rights are enough for every table; these are empty: {sorted(empty)}; {recording.gaps}",
    )
    refused = [gap for gap in recording.gaps if "of a core" not in gap[1]]
    check(not refused, f"nothing is refused: {refused}")
    return f"as user {systemd['running']['User'] or 'root'}, {len(recording.tables)} tables"


if __name__ == "__main__":
    inside(Path(sys.argv[1]))
