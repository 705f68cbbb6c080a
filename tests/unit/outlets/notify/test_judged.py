"""What travels of an incident is bounded, and survives the way."""

import json
from collections.abc import Callable

from necroscope.outlets.notify.judged import Judged, bounded


def test_a_long_report_is_cut_and_says_what_is_left_out() -> None:
    report = {
        "id": "x",
        "alternatives": ["a" * 50_000],
        "episodes": ["b" * 100_000],
        "events": ["c" * 100_000],
    }
    assert bounded(report) == {
        "id": "x",
        "events": report["events"],
        "left_out": ["alternatives", "episodes"],
    }
    assert bounded({"id": "x", "events": []}) == {"id": "x", "events": []}
    assert len(report["episodes"]) == 1


def test_it_is_the_same_after_the_way_through_json(incident: Callable[..., Judged]) -> None:
    assert Judged.from_json(json.loads(json.dumps(incident(core=None).as_json()))) == incident(
        core=None
    )
