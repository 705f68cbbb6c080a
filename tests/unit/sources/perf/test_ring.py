"""One ring: everything since the last drain, also around the end of the buffer."""

import mmap
import os
import struct
from pathlib import Path

import pytest

from necroscope.sources.perf.ring import PAGE_BYTES, Ring


class Kernel:
    """Writes into a file mapped as a ring, as the kernel would."""

    def __init__(self, path: Path, pages: int) -> None:
        self.size = pages * PAGE_BYTES
        path.write_bytes(bytes(PAGE_BYTES + self.size))
        self.ring = Ring(os.open(path, os.O_RDWR), pages)
        self.memory = mmap.mmap(self.ring.descriptor, PAGE_BYTES + self.size)
        self.head = 0

    def write(self, data: bytes) -> None:
        for byte in data:
            self.memory[PAGE_BYTES + self.head % self.size] = byte
            self.head += 1
        self.memory[1024:1032] = struct.pack("<Q", self.head)

    def tail(self) -> int:
        return int(struct.unpack("<Q", self.memory[1032:1040])[0])

    def close(self) -> None:
        self.memory.close()
        self.ring.close()


@pytest.fixture
def kernel(tmp_path: Path) -> Kernel:
    kernel = Kernel(tmp_path / "ring", 2)
    yield kernel  # type: ignore[misc]
    kernel.close()


def test_an_empty_ring_gives_nothing(kernel: Kernel) -> None:
    assert kernel.ring.drain() == b""


def test_a_drain_takes_what_came_and_frees_its_place(kernel: Kernel) -> None:
    kernel.write(b"one")
    assert kernel.ring.drain() == b"one"
    assert kernel.tail() == 3
    assert kernel.ring.drain() == b""
    kernel.write(b"two")
    assert kernel.ring.drain() == b"two"


def test_what_wraps_around_the_end_comes_in_one_piece(kernel: Kernel) -> None:
    kernel.write(bytes(kernel.size - 3))
    kernel.ring.drain()
    kernel.write(b"abcdefgh")
    assert kernel.ring.drain() == b"abcdefgh"
    assert kernel.tail() == kernel.size + 5


def test_a_full_ring_is_taken_whole(kernel: Kernel) -> None:
    kernel.write(b"x" * 100)
    kernel.ring.drain()
    whole = os.urandom(kernel.size)
    kernel.write(whole)
    assert kernel.ring.drain() == whole
