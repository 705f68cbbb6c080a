"""The labels that a recorder is started with."""

from pathlib import Path

import pytest

from necroscope.cli.recorder_options import chosen_labels
from necroscope.errors import UsageError


def test_a_label_given_by_hand_wins_over_the_file(tmp_path: Path) -> None:
    file = tmp_path / "necroscope.toml"
    file.write_text('[labels]\nzone = "a"\nrack = 7\n')
    assert chosen_labels(file, ("zone=b", "image=x=y")) == {
        "zone": "b",
        "rack": "7",
        "image": "x=y",
    }


def test_labels_cannot_steer_a_terminal(tmp_path: Path) -> None:
    file = tmp_path / "necroscope.toml"
    file.write_text('[labels]\nzone = "\\u001b[2Ja"\n')
    assert chosen_labels(file, ("ra\nck=\x9b31mb",)) == {
        "zone": "\\x1b[2Ja",
        "ra\\x0ack": "\\x9b31mb",
    }


@pytest.mark.parametrize("label", ["zone", "=a", ""])
def test_a_label_without_a_name_or_a_value_is_refused(label: str) -> None:
    with pytest.raises(UsageError, match="is not key=value"):
        chosen_labels(None, (label,))
