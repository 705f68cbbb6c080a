"""What `necroscope flame` loads: as much as the question and the format need."""

import subprocess
import sys
from pathlib import Path

from necroscope.cli.flame_outputs import OUTPUTS, writer_of

CAPTURE = Path(__file__).parents[2] / "data" / "interchange" / "wall_clock.data"
LOADED = """
import sys
from necroscope.cli.main import run
sys.argv = ["necroscope", *{words}]
try:
    run()
finally:
    print("loaded", *({modules} & sys.modules.keys()), file=sys.stderr)
"""


def loaded(words: list[object], modules: set[str]) -> set[str]:
    """Those of the modules that the process which answers has loaded, or the one that waits."""
    program = LOADED.format(words=[*map(str, words)], modules=modules)
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    lines = [line.split() for line in done.stderr.splitlines() if line.startswith("loaded")]
    return {module for _, *modules in lines for module in modules}


def test_a_wrong_option_is_reported_before_numpy_and_arrow_are_loaded() -> None:
    assert not loaded(["flame", "D", "--at", "1", "--from", "2"], {"numpy", "pyarrow"})


def test_a_picture_does_not_load_the_page_and_the_exports(tmp_path: Path) -> None:
    modules = {"numpy", "necroscope.views.web", "necroscope.interchange.writers"}
    assert loaded(["flame", CAPTURE, "-o", tmp_path / "x.svg"], modules) == {"numpy"}


def test_every_format_has_a_writer() -> None:
    assert all(callable(writer_of(name)) for name in OUTPUTS)
