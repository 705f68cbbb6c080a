"""Files of tmpfs that are copied, so that their pages are charged to a living cgroup."""

import os
from pathlib import Path

import numpy as np
import pytest

from necroscope.treat.bites import Bites
from necroscope.treat.dead_pages import PinningFile
from necroscope.treat.rehome import rehome_file

MEMORY = Path("/dev/shm")
pytestmark = pytest.mark.skipif(not MEMORY.is_dir(), reason="there is no /dev/shm")


def pinning(path: Path, device: int) -> PinningFile:
    return PinningFile(os.fsencode(path), np.zeros(1, np.int64), 1, True, False, 0, device)


def test_a_directory_that_became_a_link_leads_nowhere(tmp_path: Path) -> None:
    """A tenant owns the directory, and waits for root to come by."""
    (tmp_path / "shadow").write_text("of another")
    before = (tmp_path / "shadow").stat()
    own = MEMORY / f"necroscope-test-{os.getpid()}"
    if tmp_path.stat().st_dev == MEMORY.stat().st_dev:
        pytest.skip("temporary files are in /dev/shm here")
    own.symlink_to(tmp_path)
    try:
        said = rehome_file(pinning(own / "shadow", MEMORY.stat().st_dev), ".copy", Bites())
    finally:
        own.unlink()
    assert said == "its path leads to another file system now"
    after = (tmp_path / "shadow").stat()
    assert (after.st_ino, after.st_ctime_ns) == (before.st_ino, before.st_ctime_ns)
    assert [path.name for path in tmp_path.iterdir()] == ["shadow"]
