"""The sealing child: exit codes, priority, that it does its work without numpy, and how much memory
it takes.
"""

import subprocess
import sys
from pathlib import Path

import pytest

from necroscope.segment import seal_child as module
from necroscope.segment.journal import JournalWriter, SegmentHeader
from necroscope.segment.reader import SegmentReader
from necroscope.segment.recording import new_segment_path


def test_child_seals_and_says_nothing(record):
    live = record()
    rows = SegmentReader(live).tables
    child = [sys.executable, "-m", "necroscope.segment.seal_child", str(live)]
    for _ in range(2):
        done = subprocess.run(child, capture_output=True, check=False)
        assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    sealed = SegmentReader(live.with_name(live.name.removesuffix(".live"))).tables
    assert sealed.pop("core_minutes") > 0
    assert sealed == rows


def test_failure_is_an_exit_code_and_one_line(record, monkeypatch, capsys):
    def full(_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(module, "seal", full)
    assert module.main([str(record())]) == 1
    assert capsys.readouterr().err.startswith("error: cannot seal")


def test_wrong_words_are_a_usage_error(capsys):
    assert module.main([]) == 2
    assert "usage" in capsys.readouterr().err


@pytest.mark.root
def test_the_child_of_a_recorder_with_high_priority_has_the_lowest():
    words = (
        "import os; from necroscope.segment import seal_child; seal_child.lower_priority();"
        " print(os.getpriority(os.PRIO_PROCESS, 0))"
    )
    child = [sys.executable, "-c", f"import os; os.setpriority(os.PRIO_PROCESS, 0, -10); {words}"]
    assert subprocess.run(child, capture_output=True, text=True, check=True).stdout == "19\n"


# The child as the recorder starts it, which tells its own peak at the end: what a parent learns of
# it holds the parent's pages.
MEASURED = """
import os, runpy, sys
def tell(code):
    lines = open("/proc/self/status").read().splitlines()
    os.write(1, next(line for line in lines if line.startswith("VmHWM")).split()[1].encode())
    leave(code)
leave, os._exit = os._exit, tell
sys.argv = ["seal", sys.argv[1]]
runpy.run_module("necroscope.segment.seal_child", run_name="__main__", alter_sys=True)
"""


def peak_bytes(live: Path) -> int:
    done = subprocess.run(
        [sys.executable, "-c", MEASURED, str(live)], capture_output=True, check=True
    )
    return int(done.stdout) * 1024


def write_samples(recording: Path, start_ns: int, count: int) -> Path:
    live = new_segment_path(recording, start_ns)
    writer = JournalWriter(
        live, SegmentHeader(live.name.removesuffix(".live"), "n", "b", start_ns, 1)
    )
    for first in range(0, count, 10_000):
        rows = [
            (
                start_ns + i * 1000,
                i % 96,
                i % 500,
                i % 700,
                f"comm-{i % 50}",
                "/a/b",
                i * 7919 % 30_000,
                1,
            )
            for i in range(first, first + 10_000)
        ]
        writer.append("samples", rows)
        writer.append(
            "cores", [(start_ns + first * 1000, cpu, 10**9, *[first] * 9) for cpu in range(96)]
        )
        writer.flush()
    writer.close()
    return live


def test_memory_of_a_seal_does_not_grow_with_the_segment(recording):
    short, long = (
        write_samples(recording, 10**18 + i * 10**12, count)
        for i, count in enumerate((50_000, 500_000))
    )
    short_bytes, long_bytes = peak_bytes(short), peak_bytes(long)
    assert long_bytes - short_bytes < 6e6
    assert long_bytes < 60e6
