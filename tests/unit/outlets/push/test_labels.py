"""Labels from the recording, the downward API, a file and flags; what a collector would refuse is
left out and told.
"""

from pathlib import Path

import pytest

from necroscope.errors import UsageError
from necroscope.outlets.push.labels import collect_labels, from_environment, from_file, from_flags


def test_flags_win_over_the_file_the_file_over_variables_variables_over_the_recording(
    tmp_path: Path,
) -> None:
    file = tmp_path / "labels"
    file.write_text("zone=file\nimage=file\nnamespace=file\n")
    recorded = {"zone": "recorded", "image": "recorded", "namespace": "recorded", "job": "recorded"}
    labels, notes = collect_labels(
        recorded, {"POD_NAMESPACE": "variable", "NODE_NAME": "node-7"}, file, ["zone=flag"]
    )
    assert labels == {
        "zone": "flag",
        "image": "file",
        "namespace": "file",
        "job": "recorded",
        "node_name": "node-7",
    }
    assert notes == []


def test_a_downward_api_file_holds_quoted_values(tmp_path: Path) -> None:
    file = tmp_path / "labels"
    file.write_text('app="trainer"\nteam="vision \\"b\\""\n\n# a comment\nzone = eu-1\n')
    assert from_file(file) == {"app": "trainer", "team": 'vision "b"', "zone": "eu-1"}


def test_a_downward_api_volume_is_a_directory_of_such_files(tmp_path: Path) -> None:
    data = tmp_path / "..2026_11_16"
    data.mkdir()
    (data / "labels").write_text('pool="gpu"\n')
    (data / "annotations").write_text('kubernetes.io/config.seen="long"\n')
    (data / "zone").write_text("us-east-1a\n")
    (tmp_path / "..data").symlink_to(data.name)
    for name in ("labels", "annotations", "zone"):
        (tmp_path / name).symlink_to(f"..data/{name}")
    assert from_file(tmp_path) == {"pool": "gpu", "zone": "us-east-1a"}


def test_variables_of_our_own_name_are_labels() -> None:
    assert from_environment(
        {"NECROSCOPE_LABEL_INSTANCE_TYPE": "p4d", "PATH": "/bin", "NODE_NAME": ""}
    ) == {"instance_type": "p4d"}


def test_what_a_collector_refuses_is_left_out_and_told() -> None:
    many = {f"label{number:03d}": "x" for number in range(70)}
    labels, notes = collect_labels(many | {"long": "ä" * 65}, {}, None, [])
    assert len(labels) == 64
    assert "long" not in labels
    assert notes == [
        "70 labels are more than 64: the last 6 were left out",
        "label long is longer than 128 bytes and was left out",
    ]


@pytest.mark.parametrize("flag", ["zone", "=a", ""])
def test_a_flag_that_is_no_label_is_an_error(flag: str) -> None:
    with pytest.raises(UsageError, match="not key=value"):
        from_flags([flag])


def test_a_file_that_is_not_there_or_holds_something_else_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read labels"):
        from_file(tmp_path / "absent")
    (tmp_path / "labels").write_text("zone\n")
    with pytest.raises(UsageError, match="line 1 is not key=value"):
        from_file(tmp_path / "labels")
