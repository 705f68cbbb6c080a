"""The shipped recording of a real incident: the right verdict on any machine, without root."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from importlib.resources import as_file, files

import httpx
import pytest
from click.testing import CliRunner

from necroscope.analysis.engine import diagnose
from necroscope.cli import demo
from necroscope.cli.demo import command
from necroscope.errors import PermissionMissing
from necroscope.store.query import Store


def test_the_shipped_recording_yields_the_right_verdict() -> None:
    with as_file(files("necroscope.lab").joinpath("demo_recording")) as directory:
        (incident,) = diagnose(Store.open(directory)).incidents
        size_bytes = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    assert (incident.core, incident.mode, incident.verdict.cause) == (
        1,
        "system",
        "zombie-memcg-walk",
    )
    assert incident.verdict.confidence >= 0.8
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "probe-agent-qe"
    assert incident.verdict.origin is not None
    assert (incident.verdict.origin.kind, incident.verdict.origin.name) == (
        "container",
        "78e9e52c136f",
    )
    assert size_bytes < 2_000_000


def test_the_demo_tells_the_story_and_ends() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "necroscope", "demo", "--once"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert "walked 10,590 dead memory cgroups" in done.stdout
    assert "what will not help" in done.stdout


def test_the_demo_needs_no_module_that_only_linux_has() -> None:
    code = """if True:
        import sys
        for name in ("fcntl", "resource"):
            sys.modules[name] = None
        from necroscope.cli.main import main
        sys.argv = ["necroscope", "demo", "--once"]
        main()
    """
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "walked 10,590 dead memory cgroups" in done.stdout


def test_the_demo_serves_its_page_until_ctrl_c() -> None:
    words = [sys.executable, "-u", "-m", "necroscope", "demo", "--no-browser"]
    with subprocess.Popen(
        words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as server:
        assert server.stdout is not None
        found = next(
            match for line in server.stdout if (match := re.search(r"(http\S+)\?token=(\S+)", line))
        )
        recording = httpx.get(
            f"{found[1]}api/recording", headers={"authorization": f"Bearer {found[2]}"}, timeout=30
        )
        assert recording.json()["cpus"] == [0, 1]
        assert httpx.get(f"{found[1]}api/recording").status_code == 401
        server.send_signal(signal.SIGINT)
        _, output = server.communicate(timeout=30)
    assert (server.returncode, output) == (0, "")


class Lab(subprocess.CompletedProcess):
    """In place of the lab's process: has recorded the shipped incident."""

    def __init__(self, words: list[str], **_: object) -> None:
        super().__init__(words, 0)
        with as_file(files("necroscope.lab").joinpath("demo_recording")) as directory:
            shutil.copytree(directory, words[words.index("--dir") + 1])

    def poll(self) -> int:
        return self.returncode

    wait = poll


def test_a_live_demo_once_tells_the_verdict_and_serves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    monkeypatch.setattr(demo.subprocess, "Popen", Lab)
    monkeypatch.setattr(demo, "serve", lambda *_, **__: pytest.fail("it serves"))
    done = CliRunner().invoke(command, ["--live", "--once"], catch_exceptions=False)
    assert done.exit_code == 0
    assert "walked 10,590 dead memory cgroups" in done.output


def test_live_without_root_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(PermissionMissing, match="needs root"):
        command.main(["--live"], standalone_mode=False)


def test_the_label_beside_the_recording_is_what_the_lab_measured() -> None:
    label = json.loads(files("necroscope.lab").joinpath("demo_recording/label.json").read_text())
    assert (label["cause"], label["core"]) == ("zombie-memcg-walk", 1)
