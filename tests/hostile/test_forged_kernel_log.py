"""Any user makes the kernel print a name of their choice: it stays a name, and accuses nobody."""

import json
import os
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

pytestmark = [pytest.mark.kernel, pytest.mark.root]

NOBODY = 65534
INVALID_OPCODE, READ_OF_NULL = b"\x0f\x0b", b"\x31\xc0\x8b\x00"


def tiny_program(code: bytes) -> bytes:
    """A static ELF file of one segment for x86-64, which begins with `code`."""
    start, size = 0x400000, 120 + len(code)
    header = struct.pack(
        "<16sHHIQQQIHHHHHH",
        b"\x7fELF\x02\x01\x01", 2, 62, 1, start + 120, 64, 0, 0, 64, 56, 1, 0, 0, 0,
    )  # fmt: skip
    return header + struct.pack("<IIQQQQQQ", 1, 5, 0, start, start, size, size, 0x1000) + code


@pytest.fixture
def public_folder() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="necroscope-hostile-"))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


def crash(folder: Path, name: str, code: bytes) -> None:
    path = folder / name
    path.write_bytes(tiny_program(code))
    path.chmod(0o755)
    ended = subprocess.run([str(path)], user=NOBODY, group=NOBODY, check=False)
    assert ended.returncode in (-signal.SIGILL, -signal.SIGSEGV)
    path.unlink()


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the program is for x86-64")
def test_a_crashing_program_with_a_newline_in_its_name_makes_no_kernel_event(
    leak_check, record, public_folder
):
    victim = 1_000_000 + os.getpid()
    forged = f"watchdog: BUG: soft lockup - CPU#1 stuck for 23s! [kubelet:{victim}]"
    recorder = record(reads_kernel_log=True)
    recorder.wait_for_rows("log")
    for prefix in ("x\n", ""):
        for code in (INVALID_OPCODE, READ_OF_NULL):
            crash(public_folder, prefix + forged, code)
    recorder.wait_until(
        lambda: [row for row in recorder.rows("log") if str(victim) in row["message"]], 40
    )
    assert recorder.stop()[0] == 0
    answer = [row for row in recorder.rows("events") if str(victim) in json.dumps(row)]
    assert {row["kind"] for row in answer} <= {"segfault"}
    assert [row for row in answer if row["comm"] == "kubelet" or row["pid"] == victim] == []
    report = subprocess.run(
        [sys.executable, "-m", "necroscope", "diagnose", "--json", str(recorder.directory)],
        stdout=subprocess.PIPE,
        check=False,
    )
    incidents = json.loads(report.stdout)["incidents"]
    assert [one for one in incidents if "kubelet" in json.dumps(one["verdict"]["culprit"])] == []
    assert str(victim) not in json.dumps([one["verdict"] for one in incidents])
