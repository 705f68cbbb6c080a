"""Memory that is freed is not kept."""

import subprocess
import sys

import pytest

CODE = """
import pyarrow as pa
from necroscope.fleet.collector.memory import give_memory_back
from necroscope.fleet.collector.metrics import resident_memory_bytes
give_memory_back()
before = resident_memory_bytes()
blocks = [pa.repeat(1, 1_000_000) for _ in range(10)]
held = resident_memory_bytes()
del blocks
print(held - before, resident_memory_bytes() - before)
"""


@pytest.mark.skipif(sys.platform != "linux", reason="asks /proc")
def test_large_blocks_go_back_at_once() -> None:
    held, kept = map(int, subprocess.check_output([sys.executable, "-c", CODE]).split())
    assert held > 70_000_000
    assert kept < 16_000_000
