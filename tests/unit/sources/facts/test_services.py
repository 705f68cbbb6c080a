"""Facts about units: what came of those that are enabled."""

from pathlib import Path
from typing import Any

import pytest
from tests.fake_daemon import never, unix_daemon

from necroscope.errors import SourceUnavailable
from necroscope.sources.facts import services
from necroscope.sources.facts.services import outcome
from necroscope.sources.systemd.unit_state import ListedUnit

STARTED = {
    "InactiveExitTimestampMonotonic": 5,
    "ActiveEnterTimestampMonotonic": 6,
    "Result": "success",
}


@pytest.mark.parametrize(
    ("active", "known", "expected"),
    [
        ("active", STARTED, "succeeded"),
        ("inactive", STARTED, "succeeded"),
        ("activating", STARTED | {"NRestarts": 900, "Result": "exit-code"}, "crash-loop"),
        ("active", STARTED | {"NRestarts": 900}, "succeeded"),
        ("failed", STARTED | {"Result": "exit-code"}, "failed"),
        ("inactive", {"Result": "success"}, "never-started"),
        (
            "inactive",
            {"Result": "success", "ConditionTimestampMonotonic": 5, "ConditionResult": False},
            "condition-failed",
        ),
        ("inactive", {"Result": "success", "InactiveExitTimestampMonotonic": 5}, "succeeded"),
    ],
)
def test_the_outcome_is_one_word(active: str, known: dict[str, Any], expected: str) -> None:
    assert outcome(ListedUnit("a.service", "loaded", active, "x", "/p"), known) == expected


def test_what_a_unit_waits_for_is_reported_and_targets_that_are_everywhere_are_not() -> None:
    known = {
        "Requires": ["sysinit.target", "node-bootstrap.service"],
        "Requisite": ["docker.service"],
        "After": ["basic.target", "system.slice", "node-bootstrap.service", "docker.service"],
        "WantedBy": [],
    }
    assert services.dependencies(known) == (
        "Requires=node-bootstrap.service sysinit.target; Requisite=docker.service;"
        " After=docker.service node-bootstrap.service"
    )


def test_a_node_without_systemd_has_no_units(tmp_path: Path) -> None:
    assert list(services.collect(tmp_path)) == []


def test_a_bus_that_hangs_ends_the_stage_within_its_deadline(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "run/systemd/system").mkdir(parents=True)
    monkeypatch.setattr(services, "_TIMEOUT_S", 0.1)
    with (
        unix_daemon(tmp_path / "run/dbus/system_bus_socket", never, closes=False),
        pytest.raises(SourceUnavailable),
    ):
        list(services.collect(tmp_path))
