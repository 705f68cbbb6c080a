"""One recorder at a time writes to a recording."""

import os
import subprocess
import sys

import pytest

from necroscope.errors import RecordingBusy, RecordingError
from necroscope.segment.lock import RecordingLock, lock_directory


def test_second_recorder_is_reported_who_holds_it(recording):
    with (
        RecordingLock(recording),
        pytest.raises(RecordingBusy, match=f"pid {os.getpid()}") as caught,
    ):
        RecordingLock(recording)
    assert "--dir" in caught.value.hint
    RecordingLock(recording).close()


def test_lock_of_a_killed_recorder_is_free(recording):
    code = "import os, sys, pathlib; from necroscope.segment.lock import RecordingLock\n"
    code += "lock = RecordingLock(pathlib.Path(sys.argv[1])); os.kill(os.getpid(), 9)"
    subprocess.run([sys.executable, "-c", code, str(recording)], check=False)
    RecordingLock(recording).close()
    assert (recording / "recorder.lock").read_text() == f"{os.getpid()}\n"


def test_directory_is_locked_once(recording):
    first = lock_directory(recording)
    assert first is not None
    assert lock_directory(recording) is None
    os.close(first)
    second = lock_directory(recording)
    assert second is not None
    os.close(second)


def test_lock_that_is_a_link_is_not_followed(recording, tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("keep me")
    (recording / "recorder.lock").symlink_to(victim)
    with pytest.raises(RecordingError, match="cannot lock"):
        RecordingLock(recording)
    assert victim.read_text() == "keep me"
