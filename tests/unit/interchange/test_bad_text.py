"""What no tool wrote, given to every reader of text: an end with facts, within bounded time and
memory.
"""

import contextlib
import random
import time
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from necroscope.errors import NecroscopeError
from necroscope.interchange.capture import ImportPlan
from necroscope.interchange.detect import detect
from necroscope.interchange.dmesg import read_dmesg
from necroscope.interchange.folded import open_folded
from necroscope.interchange.mpstat import read_mpstat
from necroscope.interchange.perf_script import open_perf_script

GIB, MIB = 1 << 30, 1 << 20
MOST_S, MOST_BYTES = 20, 200 * MIB
MPSTAT = (
    b"Linux 5.4.0 (node-7) \t2026-04-15 \t_x86_64_\t(2 CPU)\n23:22:03     CPU    %usr   %nice   "
    b" %sys %iowait    %irq   %soft  %steal  %guest  %gnice   %idle\n23:22:04       0   74.00   "
    b" 6.00   20.00    0.00    0.00    0.00    0.00    0.00    0.00    0.00\n"
)
READERS: dict[str, tuple[bytes, Callable[[Path], object]]] = {
    "perf script": (
        b"app 1/1 [000] 1.000000: cpu-clock:\n\tffff main ([kernel])\n\n",
        lambda path: list(open_perf_script(path).batches(ImportPlan())),
    ),
    "folded": (b"app;main;read 3\n", lambda path: list(open_folded(path).batches(ImportPlan()))),
    "dmesg": (b"[    1.000000] a line\n", lambda path: list(read_dmesg(path))),
    "mpstat": (MPSTAT, read_mpstat),
}


def random_bytes(count: int, without: bytes = b"") -> bytes:
    return random.Random(7).randbytes(count).translate(None, without)


TEXTS = {
    "nothing": b"",
    "zero bytes": bytes(MIB),
    "random bytes": random_bytes(MIB),
    "random bytes without zeros": random_bytes(MIB, b"\0"),
    "an endless line": b"a" * (32 * MIB),
    "an endless line of blanks": b" " * (32 * MIB),
    "a line of blanks": b" " * 500_000 + b"x\n",
    "a line of words": b"a " * 250_000 + b"\n",
    "a line of digits": b"[" + b"1" * 500_000 + b"\n",
    "a line of semicolons": b";" * 500_000 + b" 1\n",
    "empty lines": b"\n" * 200_000,
}


def bounded(read: Callable[[Path], object], path: Path) -> None:
    """Whatever comes of it is no crash; what is measured is how long it takes, and how much is held
    at most.
    """
    tracemalloc.start()
    started_s = time.process_time()
    try:
        with contextlib.suppress(NecroscopeError):
            read(path)
    finally:
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert time.process_time() - started_s < MOST_S
    assert peak_bytes < MOST_BYTES


@pytest.mark.parametrize("is_headed", [False, True], ids=["alone", "after a good beginning"])
@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
@pytest.mark.parametrize("name", READERS)
def test_bad_text_ends_soon_and_small(
    tmp_path: Path, name: str, text: bytes, is_headed: bool
) -> None:
    head, read = READERS[name]
    path = tmp_path / "text"
    path.write_bytes((head if is_headed else b"") + text)
    bounded(read, path)


@pytest.mark.parametrize("is_headed", [False, True], ids=["alone", "after a good beginning"])
@pytest.mark.parametrize("name", READERS)
def test_a_file_that_is_one_hole_ends_soon_and_small(
    tmp_path: Path, name: str, is_headed: bool
) -> None:
    head, read = READERS[name]
    path = tmp_path / "text"
    path.write_bytes(head if is_headed else b"")
    with path.open("r+b") as file:
        file.truncate(GIB)
    bounded(read, path)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_what_kind_bad_text_is_of_is_asked_soon_and_small(tmp_path: Path, text: bytes) -> None:
    path = tmp_path / "text"
    path.write_bytes(text)
    bounded(detect, path)
