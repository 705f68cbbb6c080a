"""A small file is the old one or the new one, and no byte of it can change unnoticed."""

import json
import os

import pytest

from necroscope.errors import CorruptData
from necroscope.segment.checksum import read_checked, write_checked


def test_content_comes_back_and_is_json_for_others(tmp_path):
    path = tmp_path / "x.json"
    write_checked(path, {"a": [1, "ü"]})
    assert read_checked(path) == {"a": [1, "ü"]}
    assert json.loads(path.read_text())["content"] == {"a": [1, "ü"]}


def test_every_flipped_or_missing_byte_is_noticed(tmp_path):
    path = tmp_path / "x.json"
    write_checked(path, {"a": 1, "b": "text"})
    data = path.read_bytes()
    for position in range(len(data)):
        path.write_bytes(data[:position] + bytes([data[position] ^ 1]) + data[position + 1 :])
        with pytest.raises(CorruptData):
            read_checked(path)
        path.write_bytes(data[:position])
        with pytest.raises(CorruptData):
            read_checked(path)


def test_a_write_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "x.json"
    write_checked(path, 1)

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="No space"):
        write_checked(path, 2)
    assert read_checked(path) == 1


def test_a_link_in_the_way_is_not_written_through(tmp_path):
    victim = tmp_path / "victim"
    victim.write_text("keep me")
    (tmp_path / ".x.json.tmp").symlink_to(victim)
    write_checked(tmp_path / "x.json", 1)
    assert (read_checked(tmp_path / "x.json"), victim.read_text()) == (1, "keep me")
    assert not (tmp_path / "x.json").is_symlink()
