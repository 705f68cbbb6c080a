"""What an import leaves behind: nothing of its own, and nothing of one that was killed before."""

import subprocess
import sys
from pathlib import Path

import pytest

from necroscope.interchange.unfinished import unfinished

# Holds a directory in the making until its standard input closes, or until it is killed.
HOLDER = """
import sys
from pathlib import Path
from necroscope.interchange.unfinished import unfinished
with unfinished(Path(sys.argv[1])) as made:
    print(made, flush=True)
    sys.stdin.read()
"""


def holder(directory: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(directory)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


@pytest.mark.parametrize("name", ["recording", "odd [name]*?"])
def test_what_a_killed_import_left_goes_with_the_next_of_the_same_name(
    tmp_path: Path, name: str
) -> None:
    process, left = holder(tmp_path / name)
    process.kill()
    process.communicate()
    assert left.is_dir()
    with unfinished(tmp_path / name):
        assert not left.exists()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_what_a_running_import_makes_stays(tmp_path: Path) -> None:
    process, made = holder(tmp_path / "recording")
    with pytest.raises(KeyError), unfinished(tmp_path / "recording"):
        raise KeyError
    assert made.is_dir()
    process.communicate("")
    assert process.returncode == 0
    assert [path.name for path in tmp_path.iterdir()] == ["recording"]


def test_another_names_left_over_is_not_touched(tmp_path: Path) -> None:
    other = tmp_path / ".recording2.abc.importing"
    other.mkdir()
    with unfinished(tmp_path / "recording"):
        pass
    assert other.is_dir()
