"""What `necroscope flame` loads: as much as the question and the format need."""

import subprocess
import sys
from pathlib import Path

from necroscope.cli.flame_outputs import OUTPUTS, writer_of

CAPTURE = Path(__file__).parents[2] / "data" / "interchange" / "wall_clock.data"
WINDOW = ["--from", "2026-11-15T23:16:08Z", "--to", "2026-11-15T23:16:09Z"]


def loaded(words: list[object], modules: set[str]) -> set[str]:
    """Those of the modules that any process of the command has loaded."""
    command = [sys.executable, "-X", "importtime", "-m", "necroscope", *map(str, words)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return modules & {line.rpartition("|")[2].strip() for line in done.stderr.splitlines()}


def test_a_wrong_option_is_reported_before_numpy_and_arrow_are_loaded() -> None:
    assert not loaded(["flame", "D", "--at", "1", "--from", "2"], {"numpy", "pyarrow"})


def test_a_picture_does_not_load_the_page_and_the_exports(tmp_path: Path) -> None:
    modules = {"numpy", "necroscope.views.web", "necroscope.interchange.writers"}
    assert loaded(["flame", CAPTURE, "-o", tmp_path / "x.svg"], modules) == {"numpy"}


def test_a_window_of_a_capture_does_not_load_what_takes_as_long_as_arrow(tmp_path: Path) -> None:
    modules = {"numpy", "numpy.ma", "pyarrow.compute"}
    command = ["flame", CAPTURE, *WINDOW, "-o", tmp_path / "x.svg"]
    assert loaded(command, modules) == {"numpy"}
    assert (tmp_path / "x.svg").read_text().count("<rect") > 10


def test_every_format_has_a_writer() -> None:
    assert all(callable(writer_of(name)) for name in OUTPUTS)
