"""Many addresses at once, and tables of a part of a file, give the answers that one by one and the whole give."""

import os
from collections.abc import Iterator
from random import Random

import numpy as np
import pytest

from necroscope.symbols.elf import Elf
from necroscope.symbols.elf_symbols import read_dynsym
from necroscope.symbols.image import FileImage


@pytest.fixture
def image() -> Iterator[FileImage]:
    with open("/proc/self/maps") as maps:
        path = next(line.split()[-1] for line in maps if "/libc.so" in line or "/libc-" in line)
    descriptor = os.open(path, os.O_RDONLY)
    yield FileImage(descriptor)
    os.close(descriptor)


def test_offsets_at_once_have_the_addresses_of_each(image):
    segments = Elf(image).segments
    offsets = [-1, 0, image.size_bytes, 1 << 62, *Random(1).sample(range(image.size_bytes), 500)]
    assert segments.addresses_at(np.array(offsets)).tolist() == segments.addresses_of(offsets)


def test_names_at_once_and_of_near_symbols_are_those_of_the_whole_table(image):
    elf = Elf(image)
    table = read_dynsym(elf, image)
    offsets = np.array(Random(2).sample(range(image.size_bytes), 300))
    addresses = elf.segments.addresses_at(offsets)
    expected = table.find(addresses.tolist(), image)
    assert sum(name is not None for name in expected) > 50
    assert table.names(addresses, image) == expected
    few = addresses[:5]
    near = read_dynsym(elf, image, few)
    assert len(near) < len(table)
    assert near.names(few, image) == table.find(few.tolist(), image)
