"""Memory that is freed is not kept."""

import subprocess
import sys

import pytest

# As a recorder does it: the first large block that is freed raises glibc's threshold for the next.
CODE = """
from necroscope.model.allocator import give_memory_back
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
give_memory_back()
before = resident()
del [bytes(8_000_000)][:]
blocks = [b for _ in range(2000) for b in (bytearray(b"." * 200_000), bytearray(b"." * 2_000))]
held = resident()
del blocks[::2]
print(held - before, resident() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_large_blocks_go_back_at_once() -> None:
    held, kept = map(int, subprocess.check_output([sys.executable, "-c", CODE]).split())
    assert held > 380_000_000
    assert kept < 20_000_000
