"""The base package alone, as a node installs it: it records and diagnoses, and each command that
needs more names its extra.
"""

import os
import pty
import subprocess
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

ROOT = Path(__file__).parents[2]
RECORDING = ROOT / "tests" / "data" / "lab" / "rt-hog"
Run = Callable[..., subprocess.CompletedProcess[str]]


def base_distributions() -> set[str]:
    """What `pip install necroscope` brings, without any extra."""
    found: set[str] = set()
    waiting = ["necroscope"]
    while waiting:
        name = waiting.pop()
        for text in distribution(name).requires or ():
            requirement = Requirement(text)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                waiting += {requirement.name} - found
                found.add(requirement.name)
    return found


def top_levels(name: str) -> Iterator[Path]:
    files = distribution(name).files or ()
    for top in {file.parts[0] for file in files} - {"..", "__pycache__"}:
        yield Path(str(distribution(name).locate_file(top)))


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of an environment that holds links to the base packages and to this tree."""
    home = tmp_path_factory.mktemp("base")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", home], check=True)
    (packages,) = home.glob("lib/python*/site-packages")
    for name in base_distributions():
        for path in top_levels(name):
            (packages / path.name).symlink_to(path)
    (packages / "necroscope.pth").write_text(f"{ROOT / 'src'}\n", "utf-8")
    return home / "bin" / "python"


@pytest.fixture(scope="module")
def run(python: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    place = tmp_path_factory.mktemp("place")
    environment = {name: text for name, text in os.environ.items() if name != "PYTHONPATH"}

    def run(*words: object, stdin: int = subprocess.DEVNULL) -> subprocess.CompletedProcess[str]:
        stdout = subprocess.PIPE if stdin == subprocess.DEVNULL else stdin
        return subprocess.run(
            [python, "-m", "necroscope", *map(str, words)],
            cwd=place,
            env=environment,
            stdin=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            text=True,
        )

    return run


@pytest.mark.kernel
def test_it_records_and_seals(run: Run, tmp_path: Path) -> None:
    ended = run("record", "--dir", tmp_path / "D", "--for", "2s", "--free-floor", "1")
    assert ended.returncode == 0, ended.stderr
    info = run("info", tmp_path / "D", "--json")
    assert '"cores"' in info.stdout, info.stderr
    assert list((tmp_path / "D").rglob("cores.parquet"))


@pytest.mark.kernel
@pytest.mark.parametrize(
    ("words", "shown"), [(("check", "--json"), '"findings"'), (("top", "--json"), '"cores"')]
)
def test_it_looks_at_this_node(run: Run, words: tuple[str, ...], shown: str) -> None:
    ended = run(*words)
    assert ended.returncode in {0, 1}, ended.stderr
    assert shown in ended.stdout


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (("demo", "--once"), "walked 10,590 dead memory cgroups"),
        (("diagnose", RECORDING), "rt-hog"),
        (("diagnose", RECORDING, "--json"), '"rt-hog"'),
        (("info", RECORDING), "cores"),
        (("flame", RECORDING, "--format", "svg"), "<svg"),
        (("flame", RECORDING, "--format", "html"), "<html"),
        (("flame", RECORDING, "--format", "folded"), ";"),
        (("fleet", "push", "--help"), "--json"),
        (("metrics", RECORDING, "--once"), "necroscope_"),
    ],
)
def test_it_answers(run: Run, words: tuple[object, ...], shown: str) -> None:
    ended = run(*words)
    assert ended.returncode == 0, ended.stderr
    assert shown in ended.stdout


@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (("view", RECORDING, "--no-browser"), "view"),
        (("flame", RECORDING, "--format", "otlp", "-o", "x.otlp"), "otlp"),
        (("fleet", "nodes", "--lake", "lake"), "fleet"),
        (("fleet", "why", "--event", "nic_reset", "--lake", "lake"), "fleet"),
        (("fleet", "serve", "--lake", "lake", "--tokens", "tokens.toml", "--port", "0"), "fleet"),
        (("fleet", "sweep", "--lake", "lake", "--ray", "auto"), "ray"),
        (("demo", "--fleet", "--once"), "fleet"),
    ],
)
def test_a_command_that_needs_an_extra_names_it(
    run: Run, words: tuple[object, ...], extra: str
) -> None:
    run("fleet", "token", "new", "--cluster", "eu-1", "--to", "tokens.toml")
    ended = run(*words)
    error, hint = ended.stderr.splitlines()
    assert (ended.returncode, ended.stdout) == (2, "")
    assert error.startswith("error: this needs the Python package ")
    assert hint == f"hint: pip install 'necroscope[{extra}]'"


def test_the_live_view_names_its_extra_before_it_takes_the_terminal(run: Run) -> None:
    screen, terminal = pty.openpty()
    try:
        ended = run("top", stdin=terminal)
    finally:
        os.close(terminal)
        os.close(screen)
    assert ended.returncode == 2
    assert ended.stderr.splitlines()[-1] == "hint: pip install 'necroscope[top]'"


def test_the_api_answers_and_says_that_a_data_frame_needs_pandas(python: Path) -> None:
    code = f"""if True:
        import necroscope
        with necroscope.open({str(RECORDING)!r}) as recording:
            print(recording.incidents()[0].verdict.cause, recording.table("cores").num_rows)
            recording.data_frame("cores")
    """
    ended = subprocess.run([python, "-c", code], capture_output=True, text=True)
    assert ended.stdout.split() == ["rt-hog", "72"]
    assert "a data frame needs pandas, which is not installed" in ended.stderr
