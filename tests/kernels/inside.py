"""Runs in the guest, as the only thing it was booted for: installs the wheel, does the job step by
step, hands the results out.

The job came as a tar on the second disk and lies in /job; what is left in /out goes back as a tar
onto the third. Standard library only: nothing but Debian's Python may be taken for granted here.
"""

# ruff: noqa: T201 - what it has to say goes to the console

import json
import os
import subprocess
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

JOB, OUT = Path("/job"), Path("/out")
DISK_FOR_RESULTS = "/dev/vdc"


def main() -> None:
    OUT.mkdir()
    job = json.loads((JOB / "job.json").read_text())
    done: list[dict[str, Any]] = []
    release = Path("/proc/sys/kernel/osrelease").read_text().strip()
    subprocess.run(["depmod"], check=False)
    steps = [["install", sys.executable, "-m", "pip", *_install()], *job["steps"]]
    for name, *command in steps:
        print(f"guest: {name}", flush=True)
        done.append(_do(name, command, job["seconds_a_step"]))
        (OUT / "results.json").write_text(json.dumps({"release": release, "steps": done}))
        _hand_out()
    print("guest: done", flush=True)


def _hand_out() -> None:
    """After every step, all of it: a guest that is ended later has still told what it found until
    then.
    """
    with open(DISK_FOR_RESULTS, "wb") as disk:
        with tarfile.open(fileobj=disk, mode="w") as archive:
            archive.add(OUT, arcname=".")
        disk.flush()
        os.fsync(disk.fileno())


def _install() -> list[str]:
    (wheel,) = JOB.glob("*.whl")
    quiet = ["--quiet", "--disable-pip-version-check", "--root-user-action=ignore"]
    return [
        "install",
        "--no-index",
        "--no-deps",
        "--break-system-packages",
        "--no-compile",
        *quiet,
        str(wheel),
    ]


def _do(name: str, command: list[str], seconds: int) -> dict[str, Any]:
    """Its own directory below /out is where a step puts what it found, and what it said."""
    place = OUT / name
    place.mkdir()
    start_s = time.monotonic()
    with (place / "said.txt").open("wb") as said:
        try:
            code = subprocess.run(
                command, cwd=JOB, stdout=said, stderr=said, timeout=seconds, check=False
            ).returncode
        except subprocess.TimeoutExpired:
            code = 124
    return {"name": name, "code": code, "seconds": round(time.monotonic() - start_s, 1)}


if __name__ == "__main__":
    main()
