"""What a sweep on Ray decides without a cluster. With one: `scripts/test-ray`."""

import importlib.util
import socket
import subprocess
import sys

import pytest

RAY = importlib.util.find_spec("ray")
pytestmark = pytest.mark.skipif(RAY is None, reason="Ray is not installed")


def said(code: str) -> str:
    """In a process of its own: Ray leaves threads and handlers, and warns of itself."""
    start = "from necroscope.errors import UsageError\nfrom necroscope.fleet import sweep_ray\n"
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", start + code],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout.strip()


def test_chunks_are_small_enough_for_all_workers_and_large_enough_for_ray() -> None:
    asked = [(1, 1), (7, 2), (64, 2), (128, 2), (100_000, 64)]
    answer = said(f"print([sweep_ray._chunk_size(*one) for one in {asked}])")
    assert answer == "[1, 1, 8, 16, 16]"


def test_a_cluster_that_is_not_there_is_reported_at_once() -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{closed.getsockname()[1]}"
        answer = said(
            f"try: list(sweep_ray.RayWorkers({address!r}, '/nowhere')([], 0))\n"
            "except UsageError as error: print(error.facts, '/', error.hint)\n"
        )
    assert f"cannot use the Ray cluster at {address}: Connection refused" in answer
    assert "ray status" in answer
