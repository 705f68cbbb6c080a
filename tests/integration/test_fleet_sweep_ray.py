"""A sweep on a real Ray cluster of three raylets: a worker and a raylet die in the middle, the
result is complete and the same.

Run by `scripts/test-ray`: a cluster alone takes half a minute to start and to end on a small
machine.
"""

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fleet_evidence import put_bundle, verdicts_in

from necroscope.fleet.judging import read_and_judge
from necroscope.fleet.lake import Lake
from necroscope.fleet.sweep import sweep

ROOT = Path(__file__).parents[2]
BUNDLES = 24

pytestmark = [
    pytest.mark.skipif(
        "NECROSCOPE_TEST_RAY" not in os.environ, reason="starts a Ray cluster: run scripts/test-ray"
    ),
    pytest.mark.timeout(400),
]


@pytest.fixture(scope="module")
def place() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as directory:
        yield Path(directory)


@pytest.fixture(scope="module")
def result(place: Path) -> dict[str, Any]:
    """What the sweep on the cluster told; all of the cluster has ended."""
    lake, deadly = Lake.open(str(place / "ray")), Lake.open(str(place / "deadly"))
    fill(lake)
    for node in ("a", "b", "c", "deadly"):
        put_bundle(deadly, node)
    command = [sys.executable, "-m", "tests.ray_sweep", lake.url, deadly.url]
    # Ray's sockets lie below it, and their paths must be short.
    places = {"RAY_TMPDIR": str(place), "TMPDIR": str(place)}
    environment = {
        **os.environ,
        **places,
        "RAY_USAGE_STATS_ENABLED": "0",
        "PYTHONWARNINGS": "ignore",
    }
    # A session of its own: whatever of it does not end can be ended by its number, and nothing
    # else.
    with subprocess.Popen(
        command,
        cwd=ROOT,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as running:
        try:
            out, errors = running.communicate(timeout=300)
        finally:
            if running.poll() is None:
                os.killpg(running.pid, signal.SIGKILL)
    assert running.returncode == 0, errors[-3000:]
    answer: dict[str, Any] = json.loads(out.splitlines()[-1])
    return answer


def fill(lake: Lake) -> None:
    for number in range(BUNDLES):
        put_bundle(lake, f"node-{number:02d}", 3 * (number % 2))
    put_bundle(lake, "broken", content=b"no bundle")


def test_a_worker_and_a_raylet_were_killed_in_the_middle(result: dict[str, Any]) -> None:
    assert result["killed"] == ["worker", "raylet"]


def test_the_result_is_complete(result: dict[str, Any]) -> None:
    swept = result["swept"]
    assert (swept["bundles"], swept["judged"], swept["incidents"]) == (
        BUNDLES + 1,
        BUNDLES + 1,
        BUNDLES,
    )
    assert list(swept["unread"]) == []
    assert len(swept["broken"]) == 1


def test_the_result_is_the_same_as_here(result: dict[str, Any], place: Path) -> None:
    here = Lake.open(str(place / "here"))
    fill(here)
    sweep(here, lambda evidence, now_ns: (read_and_judge(here, one, now_ns) for one in evidence))
    assert verdicts_in(Lake.open(str(place / "ray"))) == verdicts_in(here)


def test_a_bundle_that_kills_every_worker_costs_only_its_own_verdict(
    result: dict[str, Any], place: Path
) -> None:
    (path,) = result["deadly"]["unread"]
    assert "/deadly--" in path
    assert result["deadly"]["judged"] == 3
    assert [row[1] for row in verdicts_in(Lake.open(str(place / "deadly")))] == ["a", "b", "c"]
