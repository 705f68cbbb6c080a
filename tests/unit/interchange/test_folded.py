from pathlib import Path

import pytest
from tests.read_capture import read_capture

from necroscope.errors import UsageError
from necroscope.interchange.folded import open_folded


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "out.folded"
    path.write_text(text)
    return path


def test_counts_and_frames_are_kept(tmp_path: Path) -> None:
    capture = open_folded(write(tmp_path, "bash;main;read_[k] 3\nbash;main 2\nmy app;a b;f 10\n"))
    found = read_capture(capture)
    assert found.weight == [3, 2, 10]
    assert found.comm == ["bash", "bash", "my app"]
    frames = [[(frame.function, frame.kind) for frame in stack] for stack in found.stacks]
    assert frames[0] == [("read", "kernel"), ("main", "user"), ("bash", "user")]
    assert frames[2] == [("f", "user"), ("a b", "user"), ("my app", "user")]
    assert not capture.facts.has_time


def test_stacks_that_share_callers_share_nodes(tmp_path: Path) -> None:
    capture = open_folded(write(tmp_path, "a;b;c 1\na;b;d 1\na;b 1\n"))
    found = read_capture(capture)
    parents = memoryview(found.profile.core.stacks()[0]).cast("i")
    assert len(parents) == 4
    c, d, b = found.stack
    assert parents[c] == parents[d] == b


def test_lines_of_another_form_are_left_out_and_counted(tmp_path: Path) -> None:
    capture = open_folded(write(tmp_path, "a;b 1\nno count here\n\na;c 2\n"))
    assert len(read_capture(capture)) == 2
    assert any(note.startswith("1 lines") for note in capture.notes)


def test_ten_thousand_frames_are_read(tmp_path: Path) -> None:
    capture = open_folded(
        write(tmp_path, ";".join(f"f{depth}" for depth in range(10_000)) + " 1\n")
    )
    assert len(read_capture(capture).stacks[0]) == 10_000


@pytest.mark.parametrize("text", ["", "hello world\n", "\x7f\n"])
def test_other_text_is_refused(text: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no folded stacks"):
        open_folded(write(tmp_path, text))
