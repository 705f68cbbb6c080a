"""The FUSE file system of the lab: its answers have the sizes of linux/fuse.h, and readers wait
until it answers again.
"""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from necroscope.lab.fuse_server import content_of

SIZES = {26: 64, 1: 128, 3: 104, 14: 16, 27: 16, 17: 80, 28: 0, 18: 0}


@pytest.mark.parametrize("opcode", SIZES)
def test_answers_have_the_size_the_kernel_expects(opcode: int) -> None:
    content = content_of(opcode, 1)
    assert content is not None
    assert len(content) == SIZES[opcode]


def test_what_it_does_not_know_the_kernel_does_without() -> None:
    assert content_of(34, 1) is None


@pytest.mark.root
@pytest.mark.kernel
@pytest.mark.skipif(not Path("/dev/fuse").exists(), reason="the kernel has no FUSE")
def test_a_reader_waits_while_it_hangs_and_goes_on_after(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-c",
        f"from necroscope.lab.fuse_server import serve; serve('x', {str(tmp_path)!r})",
    ]
    server = subprocess.Popen(command)
    try:
        _until(lambda: os.path.ismount(tmp_path))
        server.send_signal(signal.SIGUSR1)
        reader = subprocess.Popen(
            ["head", "-c", "4096", str(tmp_path / "file")], stdout=subprocess.DEVNULL
        )
        _until(lambda: _state(reader.pid) == "D")
        server.send_signal(signal.SIGUSR2)
        assert reader.wait(10) == 0
    finally:
        server.kill()
        server.wait()
        subprocess.run(["umount", "--lazy", str(tmp_path)], check=False)


def _state(pid: int) -> str:
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]


def _until(holds: object, seconds: float = 10.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():  # type: ignore[operator]
        assert time.monotonic() < deadline
        time.sleep(0.01)
