"""Lines that Ray 2.60 wrote, and those of older versions as their sources have them."""

import os
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

from necroscope.sources.ray.log_lines import TELLING, parse

DATA = Path(__file__).parents[3] / "data/ray"
NODE = "2bd39b98716a5f4ba06a0d80318fc90b74b487fec613cb9601c0d386"
OBJECT = "67a2e8cfa5a06db3ffffffffffffffffffffffff0200000001000000"
READ_NS = 1_794_793_400_000_000_000


@pytest.fixture
def in_zone() -> Iterator[None]:
    """Puts this machine's zone back."""
    before = os.environ.get("TZ")
    yield
    os.environ.pop("TZ", None) if before is None else os.environ.update(TZ=before)
    time.tzset()


def kinds(name: str) -> Counter[str]:
    events = [parse(line, READ_NS) for line in (DATA / name).read_bytes().splitlines()]
    return Counter(event.kind for event in events if event is not None)


def test_the_gcs_tells_of_a_frozen_node() -> None:
    assert kinds("frozen_node/gcs_server.out") == {
        "ray_health_check_failed": 5,
        "ray_node_dead": 2,
        "ray_actor_died": 1,
    }


def test_a_jobs_log_tells_what_it_lost_and_what_it_waited_for() -> None:
    assert kinds("frozen_node/job-driver-raysubmit.log") == {"ray_job_hang": 2, "ray_node_dead": 1}
    assert kinds("killed_node/job-driver-raysubmit.log")["ray_object_lost"] == 2


@pytest.mark.parametrize("folder", ["frozen_node", "killed_node"])
def test_the_quick_search_misses_no_line_that_a_pattern_knows(folder: str) -> None:
    for file in ("gcs_server.out", "job-driver-raysubmit.log"):
        for line in (DATA / folder / file).read_bytes().splitlines():
            assert parse(line, READ_NS) is None or TELLING.search(line)


def test_a_health_check_says_which_node_when_and_how_many_are_left() -> None:
    line = next(
        line
        for line in (DATA / "frozen_node/gcs_server.out").read_bytes().splitlines()
        if b"Health check failed" in line
    )
    event = parse(line, READ_NS)
    assert event is not None
    assert event.fields == {"node": NODE, "checks_left": 4}
    assert event.time_ns == 1_794_793_265_492_000_000
    assert event.key is None


@pytest.mark.parametrize(
    ("line", "kind", "fields"),
    [
        (
            b"Node is dead because the health check failed. node_id=" + NODE.encode(),
            "ray_node_dead",
            {"node": NODE},
        ),
        (
            b"Node " + NODE.encode() + b" is dead because the health check failed.",
            "ray_node_dead",
            {"node": NODE},
        ),
        (
            (
                b"Exiting because this node manager has mistakenly been marked as dead by the GCS:"
                b" GCS failed to check the health"
            ),
            "ray_node_dead",
            {"node": "this"},
        ),
        (
            b"ray.exceptions.ObjectFetchTimedOutError: Failed to retrieve object "
            + OBJECT.encode()
            + b".",
            "ray_fetch_timeout",
            {"error": "ObjectFetchTimedOutError", "object": OBJECT},
        ),
        (b"ray.exceptions.ObjectLostError: gone", "ray_object_lost", {"error": "ObjectLostError"}),
        (b"ray.exceptions.OwnerDiedError", "ray_object_lost", {"error": "OwnerDiedError"}),
        (
            b"ray.exceptions.ObjectReconstructionFailedLineageEvictedError: x",
            "ray_object_lost",
            {"error": "ObjectReconstructionFailedLineageEvictedError"},
        ),
    ],
)
def test_lines_of_other_versions(line: bytes, kind: str, fields: dict[str, str]) -> None:
    assert TELLING.search(line)
    event = parse(line, READ_NS)
    assert event is not None
    assert (event.kind, event.fields, event.time_ns) == (kind, fields, None)


def test_an_actor_that_was_let_go_did_not_die() -> None:
    line = (
        f"Actor is failed on worker {NODE} at node {NODE}, need_reschedule = 0, remaining_restarts"
        f" = 0 actor_id={NODE}"
    )
    assert parse(line.encode(), READ_NS) is None
    assert parse(line.replace("reschedule = 0", "reschedule = 1").encode(), READ_NS) is not None


def test_a_stamp_of_another_zone_is_put_right(in_zone: None) -> None:
    """Ours is five hours behind, the container's is UTC; and the other way round."""
    stamp = b"[2026-11-16 01:41:05,492 W 1 1] Health check failed for node " + NODE.encode()
    os.environ["TZ"] = "EST5"
    time.tzset()
    assert parse(stamp, READ_NS).time_ns == 1_794_793_265_492_000_000  # type: ignore[union-attr]
    local = b"[2026-11-15 20:41:05,492 W 1 1] Health check failed for node " + NODE.encode()
    assert parse(local, READ_NS).time_ns == 1_794_793_265_492_000_000  # type: ignore[union-attr]


@pytest.mark.parametrize(
    "stamp", [b"[2026-99-16 01:41:05,492", b"[9999-12-31 23:59:59,999", b"[", b""]
)
def test_a_stamp_that_is_none_leaves_the_time_open(stamp: bytes) -> None:
    event = parse(stamp + b" Health check failed for node " + NODE.encode(), READ_NS)
    assert event is not None
    assert event.time_ns is None


def test_hostile_lines_are_made_printable_and_cut() -> None:
    event = parse(
        b"\x1b[2J Health check failed for node " + NODE.encode() + b"x" * 100_000, READ_NS
    )
    assert event is not None
    assert event.message.startswith("\\x1b[2J")
    assert len(event.message) <= 4096


def test_no_line_makes_a_pattern_slow() -> None:
    hostile = (
        b"Actor is failed on worker " + b"a" * 64_000,
        b"exceptions.ObjectLostError: " + b"object " * 9_000,
        b"0" * 64_000,
    )
    started = time.process_time()
    for line in hostile:
        parse(b"ray." + line, READ_NS)
    assert time.process_time() - started < 2
