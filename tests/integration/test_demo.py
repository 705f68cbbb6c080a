"""The shipped recording of a real incident: the right verdict on any machine, without root."""

import json
import os
import subprocess
import sys
from importlib.resources import as_file, files

import pytest

from necroscope.analysis.engine import diagnose
from necroscope.cli.demo import command
from necroscope.errors import PermissionMissing
from necroscope.store.query import Store


def test_the_shipped_recording_yields_the_right_verdict() -> None:
    with as_file(files("necroscope.lab").joinpath("demo_recording")) as directory:
        (incident,) = diagnose(Store.open(directory)).incidents
        size_bytes = sum(path.stat().st_size for path in directory.rglob("*") if path.is_file())
    assert (incident.core, incident.mode, incident.verdict.cause) == (1, "system", "zombie-memcg-walk")
    assert incident.verdict.confidence >= 0.8
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "probe-agent-qe"
    assert incident.verdict.origin is not None
    assert (incident.verdict.origin.kind, incident.verdict.origin.name) == ("container", "78e9e52c136f")
    assert size_bytes < 2_000_000


def test_the_demo_tells_the_story_and_ends() -> None:
    done = subprocess.run([sys.executable, "-m", "necroscope", "demo", "--once"], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    assert "walked 10,590 dead memory cgroups" in done.stdout
    assert "what will not help" in done.stdout


def test_live_without_root_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(PermissionMissing, match="needs root"):
        command.main(["--live"], standalone_mode=False)


def test_the_label_beside_the_recording_is_what_the_lab_measured() -> None:
    label = json.loads(files("necroscope.lab").joinpath("demo_recording/label.json").read_text())
    assert (label["cause"], label["core"]) == ("zombie-memcg-walk", 1)
