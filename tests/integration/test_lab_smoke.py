"""Four scenarios on this kernel: provoked, measured, labelled, diagnosed, and nothing of them left
behind.
"""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from necroscope.lab import catalog
from necroscope.lab.label import read_label
from necroscope.lab.score.guess import guesses
from necroscope.lab.score.scoring import diagnose
from necroscope.model.units import parse_moment_ns
from necroscope.store.query import Store

pytestmark = [pytest.mark.root, pytest.mark.kernel, pytest.mark.timeout(900)]


def run_lab(name: str, directory: Path, seconds: int, baseline: int = 2) -> dict[str, Any]:
    """The label; the run waits for another one on this machine, which is why it may take long."""
    if missing := catalog.missing_needs(catalog.find(name)):
        pytest.skip(f"{name} needs {', '.join(missing)}: {catalog.install_hint(missing)}")
    command = [
        sys.executable,
        "-m",
        "necroscope",
        "lab",
        "run",
        name,
        "--dir",
        str(directory),
        "--json",
        "--force",
        "--seed",
        "1",
    ]
    done = subprocess.run(
        [*command, "--seconds", str(seconds), "--baseline", str(baseline)],
        capture_output=True,
        text=True,
    )
    if name == "idle" and "busy share" in done.stderr:
        pytest.skip(f"this machine is not idle: {done.stderr.splitlines()[-1]}")
    assert done.returncode == 0, done.stderr
    label: dict[str, Any] = json.loads(done.stdout)
    assert label == read_label(directory)
    return label


def causes_named(label: dict[str, Any], directory: Path) -> list[str | None]:
    """The surest first. Such short runs are enough for the plainest only: the verdicts on all are
    held by tests/data/lab.
    """
    return [guess.cause for guess in guesses(diagnose(directory), label) if guess.is_named]


def recorded_during(label: dict[str, Any], directory: Path, table: str) -> list[dict[str, Any]]:
    span = (parse_moment_ns(label[key], 0) for key in ("from", "to"))
    return list(Store.open(directory).rows(table, *span).to_pylist())


@pytest.mark.slow
def test_a_hog_fills_its_core(tmp_path: Path) -> None:
    label = run_lab("userspace-hog", tmp_path / "r", 5)
    assert (label["cause"], label["mode"]) == ("userspace-hog", "user")
    assert label["impact"]["user_share"] > 0.8
    samples = recorded_during(label, tmp_path / "r", "samples")
    assert {sample["cpu"] for sample in samples if sample["comm"] == label["culprit"]["comm"]} == {
        label["core"]
    }


@pytest.mark.slow
def test_a_blackout_delays_packets(tmp_path: Path) -> None:
    label = run_lab("softirq-blackout", tmp_path / "r", 8)
    assert label["impact"]["packet_delay_max_ms"] > 800
    delays = recorded_during(label, tmp_path / "r", "softirq_delay")
    assert {delay["cpu"] for delay in delays if delay["worst_ns"] > 800_000_000} == {label["core"]}
    # Eight seconds do not always tell it from its twin, in which a poll waits that softirqs would
    # have run.
    assert causes_named(label, tmp_path / "r")[0] in (label["cause"], label["twin"])


@pytest.mark.slow
def test_zombies_are_walked_and_gone_after(tmp_path: Path) -> None:
    label = run_lab("zombie-memcg-walk", tmp_path / "r", 10)
    assert label["impact"]["memory_cgroups"] > 7000
    assert label["origin"]["kind"] == "container"
    ledger = recorded_during(label, tmp_path / "r", "cgroup_ledger")
    assert any(label["origin"]["also"][0] in row["path"] for row in ledger)


def test_an_idle_machine_has_no_cause(tmp_path: Path) -> None:
    label = run_lab("idle", tmp_path / "r", 3)
    assert (label["cause"], label["culprit"], label["core"]) == (None, None, None)
    assert causes_named(label, tmp_path / "r") == []
