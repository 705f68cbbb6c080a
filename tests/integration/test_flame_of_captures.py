"""`necroscope flame` straight from other tools' captures, and of directories of rolling
captures.
"""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from tests.integration.flame_command import FlameCommand, folded, svg_titles

from necroscope.errors import UsageError
from necroscope.interchange import importer
from necroscope.interchange.importer import Options, import_files

CAPTURES = Path(__file__).parents[1] / "data" / "interchange"


@pytest.fixture
def flame(
    monkeypatch: pytest.MonkeyPatch, capfdbinary: pytest.CaptureFixture[bytes]
) -> FlameCommand:
    return FlameCommand(monkeypatch, capfdbinary)


@pytest.mark.parametrize("content", [None, b"", b"\x7fELF\0\0", b"hello world"])
def test_a_source_that_is_no_capture_is_reported(flame, tmp_path, content):
    path = tmp_path / "thing"
    if content is not None:
        path.write_bytes(content)
    done = flame(path)
    assert done.code in (2, 4)
    assert done.said.startswith("error: ")
    assert str(path) in done.said


def test_an_empty_directory_is_no_recording(flame, tmp_path):
    done = flame(tmp_path)
    assert (done.code, "is not a recording" in done.said) == (4, True)


def test_a_capture_is_asked_straight_and_nothing_is_left(flame, tmp_path, monkeypatch):
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    for name in ("wall_clock.data", "file.data", "pipe.data", "compressed.data", "file.script.txt"):
        done = flame(CAPTURES / name, "-o", tmp_path / "out.svg")
        assert done.code == 0, done.said
        assert len(svg_titles((tmp_path / "out.svg").read_bytes())) > 20
        assert os.listdir(temporary) == []


def test_a_window_of_a_capture_is_what_the_recording_of_all_of_it_gives(flame, tmp_path):
    capture = CAPTURES / "wall_clock.data"
    assert flame(capture, "--dir", tmp_path / "all", command="import").code == 0
    span = json.loads(flame(tmp_path / "all", "--json").out)
    words = ["--at", span["from"].replace("Z", "+00:00"), "--around", "200ms", "--format", "folded"]
    assert folded(flame(capture, *words)) == folded(flame(tmp_path / "all", *words))


def test_only_the_window_of_a_capture_is_imported(flame, tmp_path, monkeypatch):
    reports = []

    def watched(*words):
        reports.append(import_files(*words))
        return reports[-1]

    monkeypatch.setattr(importer, "import_files", watched)
    rolling_captures(tmp_path / "captures")
    done = flame(tmp_path / "captures", "--at", "2026-04-15T10:33:07Z", "--format", "folded")
    assert sum(folded(done).values()) == 10
    assert [report.rows["samples"] for report in reports] == [10]


@pytest.mark.parametrize("name", ["wall_clock.data", "pipe.data", "file.script.txt"])
def test_a_window_outside_of_a_capture_is_reported_with_its_span_and_read_once(
    flame, monkeypatch, name
):
    calls = []
    monkeypatch.setattr(
        importer, "import_files", lambda *words: (calls.append(words), import_files(*words))[1]
    )
    done = flame(CAPTURES / name, "--at", "2020-01-01T00:00:00Z")
    assert done.code == 2
    said = (
        r"error: no samples from 2019-12-31T23:59:57.500Z to 2020-01-01T00:00:02.500Z; the capture"
        r" is from 20\S+Z to 20\S+Z"
    )
    assert re.search(said, done.said), done.said
    assert len(calls) == 1


def test_a_capture_whose_head_says_that_it_lies_outside_of_the_window_is_not_read(
    tmp_path, monkeypatch
):
    def refuse(*_words):
        raise AssertionError("it was read")

    shutil.copy(CAPTURES / "wall_clock.data", tmp_path / "perf-node-7-20261115-120s.data")
    monkeypatch.setattr("necroscope.interchange.perf_data.reader._Reading", refuse)
    with pytest.raises(UsageError, match="the capture is from 2026-11-15"):
        import_files([tmp_path], tmp_path / "d", Options(to_ns=1_500_000_000_000_000_000))


def rolling_captures(folder: Path) -> None:
    """Three captures of two minutes, ten seconds apart, as text; at 10:33:07 core 1 walks
    zombies.
    """
    folder.mkdir()
    for number, name in enumerate(("103000", "103210", "103420")):
        lines = []
        for second in range(120):
            is_stall = number == 1 and 55 <= second <= 59
            for cpu in (0, 1):
                stack = ["mem_cgroup_iter", "cgroup_walk"] if is_stall and cpu == 1 else ["work"]
                lines.append(
                    f"kubelet 77/78 [{cpu:03}] {5000 + 130 * number + second}.{cpu}00000:         "
                    " 1 cycles: "
                )
                lines += [
                    f"\tffffffff81000000 {function}+0x1 ([kernel.kallsyms])" for function in stack
                ]
                lines += ["\t          401000 main+0x10 (/usr/bin/kubelet)", ""]
        (folder / f"perf-node-7-20260415-{name}-120s.stacks").write_text("\n".join(lines) + "\n")


def test_rolling_captures_and_the_five_seconds_around_a_moment_of_one_core_in_two_commands(
    flame, tmp_path
):
    rolling_captures(tmp_path / "captures")
    assert flame(tmp_path / "captures", "--dir", tmp_path / "d", command="import").code == 0
    moment = "2026-04-15T10:33:07Z"
    assert (
        flame(tmp_path / "d", "--at", moment, "--cpu", "1", "-o", tmp_path / "core1.svg").code == 0
    )
    picture = (tmp_path / "core1.svg").read_bytes()
    assert any(
        title.startswith("mem_cgroup_iter\nkernel") and "100.00 %" in title
        for title in svg_titles(picture)
    )
    assert b"node-7, core 1: 2026-04-15T10:33:04.500Z to 2026-04-15T10:33:09.500Z" in picture
    assert folded(flame(tmp_path / "d", "--at", moment, "--cpu", "0", "--format", "folded")) == {
        "main;work": 5
    }


def test_rolling_captures_are_one_recording_with_its_gaps(flame, tmp_path):
    rolling_captures(tmp_path / "captures")
    done = flame(tmp_path / "captures", "--format", "folded")
    assert folded(done) == {"main;work": 715, "main;cgroup_walk;mem_cgroup_iter": 5}
    assert "note: 2026-04-15T10:31:59" in done.said


def test_rolling_perf_data_is_dated_by_its_names(flame, tmp_path):
    (tmp_path / "captures").mkdir()
    for name in ("103000", "103200"):
        shutil.copy(
            CAPTURES / "file.data", tmp_path / "captures" / f"perf-node-7-20260415-{name}-120s.data"
        )
    assert flame(tmp_path / "captures", "--dir", tmp_path / "d", command="import").code == 0
    found = json.loads(
        flame(
            tmp_path / "d", "--at", "2026-04-15T10:32:01Z", "--around", "2s", "--cpu", "0", "--json"
        ).out
    )
    assert found["samples"] > 20
    assert found["from"] >= "2026-04-15T10:32:00"


@pytest.mark.parametrize(
    "name", ["wall_clock.data", "pipe.data", "compressed.data", "file.script.txt"]
)
def test_the_command_says_what_it_says_without_a_process_for_the_import(flame, tmp_path, name):
    capture = CAPTURES / name
    expected = flame(capture, "-o", tmp_path / "here.svg")
    words = ["flame", str(capture), "-o", str(tmp_path / "there.svg")]
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    done = subprocess.run(
        [sys.executable, "-m", "necroscope", *words],
        capture_output=True,
        check=False,
        env={**os.environ, "TMPDIR": str(temporary)},
    )
    assert (done.returncode, done.stderr.decode()) == (expected.code, expected.said)
    assert (tmp_path / "there.svg").read_bytes() == (tmp_path / "here.svg").read_bytes()
    assert os.listdir(temporary) == []


def test_an_error_of_the_import_is_the_error_of_the_command(flame, tmp_path):
    cut = tmp_path / "cut.data"
    cut.write_bytes((CAPTURES / "wall_clock.data").read_bytes()[:100])
    words = ["flame", str(cut), "-o", str(tmp_path / "x.svg")]
    done = subprocess.run(
        [sys.executable, "-m", "necroscope", *words], capture_output=True, check=False
    )
    expected = flame(*words[1:])
    assert done.returncode == expected.code != 0
    assert done.stderr.decode() == expected.said
