"""Whose each page is, from files laid out as the kernel's."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from necroscope.errors import SourceUnavailable
from necroscope.treat.kernel_pages import KernelPages, PageKind
from necroscope.treat.mapped_pages import runs

LRU, ANONYMOUS, SWAPBACKED = 1 << 5, 1 << 12, 1 << 14
FRAMES = 40_000


@pytest.fixture
def pages(tmp_path: Path) -> Iterator[KernelPages]:
    """Frame 7 is a file's, 20,000 one of tmpfs, 39,999 a process's; frame 8 is on no list."""
    owners, flags = np.zeros(FRAMES, np.uint64), np.zeros(FRAMES, np.uint64)
    for frame, flag in (
        (7, LRU),
        (8, 0),
        (20_000, LRU | SWAPBACKED),
        (39_999, LRU | SWAPBACKED | ANONYMOUS),
    ):
        owners[frame], flags[frame] = 100 + frame % 3, flag
    (tmp_path / "proc").mkdir()
    (tmp_path / "proc/kpagecgroup").write_bytes(owners.tobytes())
    (tmp_path / "proc/kpageflags").write_bytes(flags.tobytes())
    opened = KernelPages(tmp_path)
    yield opened
    opened.close()


def test_pages_are_counted_by_owner_and_kind(pages: KernelPages) -> None:
    counted = pages.count(pause=lambda _: None)
    assert dict(counted[101]) == {PageKind.CACHE: 1}
    assert dict(counted[102]) == {PageKind.SHARED: 1}
    assert dict(counted[100]) == {PageKind.ANONYMOUS: 1}


def test_owners_come_in_the_order_of_the_question_and_beyond_the_end_is_none(
    pages: KernelPages,
) -> None:
    frames = np.array([39_999, 7, 20_000, 7, 1_000_000], np.uint64)
    assert pages.owners(frames).tolist() == [100, 101, 102, 101, 0]
    assert pages.owners(np.zeros(0, np.uint64)).tolist() == []


def test_a_kernel_that_does_not_tell_is_an_error_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(SourceUnavailable, match="kpagecgroup"):
        KernelPages(tmp_path)


def test_neighbouring_pages_are_one_bite_and_none_is_longer_than_allowed() -> None:
    places = np.array([0, 1, 2, 3, 4, 9, 10], np.int64)
    assert runs(places) == [(0, 5), (9, 11)]
    assert runs(places, longest=2) == [(0, 2), (2, 4), (4, 5), (9, 11)]
    assert runs(np.zeros(0, np.int64)) == []
