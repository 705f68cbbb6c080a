"""What a command that asks a recording is given to ask."""

from pathlib import Path

import pytest
from tests.closed_directory import closed

from necroscope.cli.opened_recording import opened_recording
from necroscope.errors import PermissionMissing


@pytest.mark.parametrize("place", ["", "recording", "capture.stacks"])
def test_what_lies_in_a_directory_that_is_closed_to_us_is_an_error_with_a_hint(
    tmp_path: Path, place: str
) -> None:
    private = tmp_path / "private"
    (private / "recording").mkdir(parents=True)
    (private / "recording" / "recording.json").touch()
    (private / "capture.stacks").touch()
    with (
        closed(private),
        pytest.raises(PermissionMissing) as caught,
        opened_recording(private / place, None, None),
    ):
        pass
    assert caught.value.facts == f"cannot read {private / place}: permission denied"
    assert "root" in caught.value.hint
