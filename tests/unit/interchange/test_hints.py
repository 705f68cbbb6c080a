"""A file that cannot be read gets an error that says what to give instead."""

import gzip
from collections.abc import Callable
from pathlib import Path

import pytest

from necroscope.errors import UsageError
from necroscope.interchange.detect import detect
from necroscope.interchange.folded import open_folded
from necroscope.interchange.importer import Options, import_files
from necroscope.interchange.perf_data.reader import open_perf_data
from necroscope.interchange.perf_script import open_perf_script
from necroscope.interchange.rolling import list_rolling
from necroscope.interchange.text_pieces import open_text


@pytest.mark.parametrize(
    "read",
    [
        detect,
        open_text,
        open_perf_data,
        list_rolling,
        lambda path: import_files([path], path / "out"),
    ],
)
def test_a_path_that_leads_nowhere(tmp_path: Path, read: Callable[[Path], object]) -> None:
    with pytest.raises(UsageError, match=r"cannot read .*absent: No such file") as found:
        read(tmp_path / "absent")
    assert found.value.hint


@pytest.mark.parametrize(
    ("content", "read"),
    [
        (b"", detect),
        (gzip.compress(b"text")[:12], detect),
        (b"hello\n", open_folded),
        (b"hello\n", open_perf_script),
        (b"hello, this is no capture at all\n" * 9, open_perf_data),
    ],
)
def test_a_file_of_another_kind(
    tmp_path: Path, content: bytes, read: Callable[[Path], object]
) -> None:
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(UsageError) as found:
        read(path)
    assert found.value.hint


def test_a_file_that_holds_nothing(tmp_path: Path) -> None:
    path = tmp_path / "dmesg.txt"
    path.write_text("2026-04-12T13:20:00+00:00 line\n")
    with pytest.raises(UsageError, match="none of the files") as found:
        import_files([path], tmp_path / "out", Options(to_ns=1))
    assert "--from" in found.value.hint
