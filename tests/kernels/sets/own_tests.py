"""The project's own tests that ask the kernel, run by pytest in the guest: perf, BPF, procfs,
sysfs, kernel log, symbols.

And those that ask systemd, which is a real one there, with a unit that crashes again and again.
"""

import re
import subprocess
import sys
from pathlib import Path

from tests.kernels.sets import wire
from tests.kernels.sets.looking import check

# What this set needs in the guest beside the sets.
PLACES = (
    *(
        "tests/unit/perf_abi",
        "tests/unit/sources/perf",
        "tests/unit/sources/procfs",
        "tests/unit/sources/sysfs",
    ),
    *("tests/unit/sources/cgroupfs", "tests/unit/sources/kernel_log", "tests/unit/symbols"),
    "tests/integration/test_units_live.py",
)
_DATA = tuple(
    f"tests/data/{area}"
    for area in ("perf", "procfs", "sysfs", "cgroupfs", "kernel_log", "symbols")
)
# Modules that these tests import.
_SHARED = tuple(
    f"tests/{name}.py"
    for name in (
        *("conftest", "injected_waits", "kernel_log_stories", "page_fault_server"),
        *("synthetic_root", "whole_symbol_table"),
    )
)
FILES = ("pyproject.toml", *_SHARED, *PLACES, *_DATA)


def inside(out: Path) -> None:
    wire.take_unit("lost-backend", "/bin/false", extra="Restart=always\nRestartSec=1s\n")
    wire.systemctl("start", "lost-backend")
    options = ["-q", "-m", "kernel or root", "-p", "no:cacheprovider", "--timeout", "300"]
    command = [sys.executable, "-m", "pytest", *options, *PLACES]
    with (out / "pytest.txt").open("wb") as report:
        subprocess.run(command, stdout=report, stderr=report, check=False)


def verify(out: Path) -> None:
    report = (out / "pytest.txt").read_text(errors="replace")
    last = report.strip().splitlines()[-1] if report.strip() else "nothing"
    passed = re.search(r"(\d+) passed", last)
    check(passed is not None and int(passed[1]) > 20, f"they ran: {last}")
    failed = re.findall(r"^(?:FAILED|ERROR) (\S+)", report, re.MULTILINE)
    check(not failed, f"they pass; these do not: {failed}")


if __name__ == "__main__":
    inside(Path(sys.argv[1]))
