"""Event files of Ray 2.60."""

from pathlib import Path

import pytest

from necroscope.sources.ray.event_files import TELLING, parse
from necroscope.sources.ray.ray_event import RayEvent

DATA = Path(__file__).parents[3] / "data/ray"


def events(name: str) -> list[RayEvent]:
    lines = (DATA / name).read_bytes().splitlines()
    found = [(line, parse(line)) for line in lines]
    assert all(event is None or TELLING.search(line) for line, event in found)
    return [event for _, event in found if event is not None]


def test_a_dead_node_is_the_same_node_in_both_files() -> None:
    (always,), (exported,) = (
        events("frozen_node/events/event_GCS.log"),
        events("frozen_node/export_events/event_EXPORT_NODE.log"),
    )
    assert always.kind == exported.kind == "ray_node_dead"
    assert always.key == exported.key == "2bd39b98716a5f4ba06a0d80318fc90b74b487fec613cb9601c0d386"
    assert exported.time_ns == 1_794_793_317_496_000_000
    assert exported.fields["reason"] == "UNEXPECTED_TERMINATION"


def test_an_actor_that_died_with_its_node_and_not_one_that_was_asked_to_exit() -> None:
    found = events("frozen_node/export_events/event_EXPORT_ACTOR.log")
    assert {(event.fields["class"], event.fields["reason"]) for event in found} == {
        ("A", "NODE_DIED")
    }
    assert {event.key for event in found} == {"93454afda61dea1a9fed52bd02000000"}


def test_a_job_that_failed_is_reported_without_its_log() -> None:
    (event,) = events("frozen_node/export_events/event_EXPORT_SUBMISSION_JOB.log")
    assert (event.kind, event.fields["exit_code"]) == ("ray_job_failed", 1)
    assert event.message.endswith("Job entrypoint command failed with exit code 1")
    (found,) = events("frozen_node/events/event_JOBS.log")
    assert found.key == event.key


def test_a_job_that_succeeded_is_reported_and_one_that_was_stopped_is_not() -> None:
    found = (
        b'{"source_type": "JOBS", "timestamp": "1760000000", "message": "Completed a ray job'
        b' raysubmit_1 with a status %s.",'
    )
    found += b' "custom_fields": {"submission_id": "raysubmit_1"}}'
    (event,) = filter(
        None, (parse(found % status) for status in (b"SUCCEEDED", b"STOPPED", b"RUNNING"))
    )
    assert (event.kind, event.key) == ("ray_job_succeeded", "raysubmit_1")
    assert TELLING.search(found % b"SUCCEEDED")
    data = (
        b'{"submission_job_id": "raysubmit_1", "status": "%s", "end_time": "1760000000000",'
        b' "message": "", "driver_exit_code": 0}'
    )
    exported = b'{"source_type": "EXPORT_SUBMISSION_JOB", "event_data": %s}' % data
    (event,) = filter(None, (parse(exported % status) for status in (b"SUCCEEDED", b"STOPPED")))
    assert (event.kind, event.fields["exit_code"]) == ("ray_job_succeeded", 0)
    assert TELLING.search(exported % b"SUCCEEDED")


def test_a_driver_that_died_is_a_failed_job() -> None:
    assert {(event.kind, event.key) for event in events("killed_node/events/event_RAYLET.log")} == {
        ("ray_job_failed", "02000000")
    }


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"[]",
        b'{"source_type": "GCS"}',
        b'{"source_type": [1]}',
        (
            b'{"source_type": "EXPORT_NODE", "event_data": {"state": "DEAD", "node_id": "!",'
            b' "end_time_ms": "x"}}'
        ),
        b'{"source_type": "EXPORT_ACTOR", "event_data": {"state": "DEAD", "death_cause": 5}}',
        b"[" * 100_000,
        (
            b'{"source_type": "GCS", "label": "RAY_NODE_REMOVED", "timestamp": Infinity,'
            b' "custom_fields": {"node_id": 1}}'
        ),
        (
            b'{"source_type": "EXPORT_SUBMISSION_JOB", "event_data": {"status": "FAILED",'
            b' "submission_job_id": 1,"end_time": 1e999}}'
        ),
    ],
)
def test_damaged_lines_say_nothing(line: bytes) -> None:
    assert parse(line) is None
