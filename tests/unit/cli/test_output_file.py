"""Output is there whole or not at all, and nothing but a regular file is replaced."""

import os
import threading

import pytest

from necroscope.cli.output_file import output_file
from necroscope.errors import NecroscopeError


def test_a_file_is_replaced_with_the_usual_permissions(tmp_path):
    path = tmp_path / "out.svg"
    path.write_text("old")
    path.chmod(0o600)
    before = os.umask(0o027)
    try:
        with output_file(path) as file:
            file.write(b"new")
            assert path.read_text() == "old"
    finally:
        os.umask(before)
    assert path.read_text() == "new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert os.listdir(tmp_path) == ["out.svg"]


def test_an_error_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "out.svg"
    path.write_text("old")

    def interrupted() -> None:
        with output_file(path) as file:
            file.write(b"half")
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.svg"]


def test_a_link_keeps_pointing_where_it_did(tmp_path):
    (tmp_path / "real.svg").write_text("old")
    (tmp_path / "link.svg").symlink_to("real.svg")
    with output_file(tmp_path / "link.svg") as file:
        file.write(b"new")
    assert (tmp_path / "link.svg").is_symlink()
    assert (tmp_path / "real.svg").read_text() == "new"


def test_a_pipe_is_written_to_and_stays_one(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    found = []
    reader = threading.Thread(target=lambda: found.append(path.read_bytes()))
    reader.start()
    with output_file(path) as file:
        file.write(b"through")
    reader.join()
    assert found == [b"through"]
    assert path.is_fifo()


@pytest.mark.parametrize("name", ["missing/out.svg", "."])
def test_a_place_that_cannot_be_written_is_reported(tmp_path, name):
    with (
        pytest.raises(NecroscopeError, match="cannot write") as error,
        output_file(tmp_path / name),
    ):
        pass
    assert error.value.hint
