"""How long the check-up looks, and what that makes of a core that is held for a moment."""

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from necroscope.analysis.checkup.finding import NodeSnapshot
from necroscope.analysis.recreations import RecreationLoop
from necroscope.cli import check
from necroscope.model.reading import Rows
from necroscope.model.tables import TABLES
from necroscope.model.top_source import TopSample
from necroscope.sources.cgroupfs.timed_read import ProbeResult, TimedRead

S = 1_000_000_000
NOW_NS = 1_776_248_000 * S


class Looked:
    """A `TopSource`: a core that was this much in system mode in each second."""

    def __init__(self, shares: list[float]) -> None:
        self._shares = shares

    def rows(self, table: str, from_ns: int, to_ns: int) -> Rows:
        names = [column.name for column in TABLES[table].columns]
        found = [
            {"time": NOW_NS - S, "elapsed_ns": S, "system_ns": round(share * S)}
            for share in self._shares
        ]
        return (
            [tuple((dict.fromkeys(names, 0) | row)[name] for name in names) for row in found]
            if table == "cores"
            else []
        )

    def samples_between(self, from_ns: int, to_ns: int) -> list[TopSample]:
        return []

    def notices(self) -> list[str]:
        return []

    def span(self) -> None:
        return None

    def status(self) -> str:
        return ""


def checked(monkeypatch: pytest.MonkeyPatch, *looks: list[float]) -> tuple[int, list[str], int]:
    left = list(looks)
    monkeypatch.setattr(check, "look", lambda *_: NodeSnapshot(Looked(left.pop(0)), NOW_NS))
    result = CliRunner().invoke(check.command, ["--json"])
    findings = json.loads(result.stdout)["findings"]
    return (
        len(left),
        [one["level"] for one in findings if one["question"] == "saturated-core"],
        result.exit_code,
    )


def test_a_quiet_node_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checked(monkeypatch, [0.1], [0.1])[:2] == (1, [])


def test_a_held_core_is_looked_at_again_and_a_problem_if_it_stays_held(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert checked(monkeypatch, [1.0], [1.0, 0.97, 1.0]) == (0, ["problem"], 1)


def test_a_core_that_was_held_for_a_moment_is_no_finding(monkeypatch: pytest.MonkeyPatch) -> None:
    assert checked(monkeypatch, [1.0], [1.0, 0.4, 1.0])[:2] == (0, [])


def test_who_recreates_a_container_is_watched_for_until_it_is_seen(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    process = tmp_path / "proc/7"
    process.mkdir(parents=True)
    (process / "comm").write_text("podman\n")
    (process / "cmdline").write_text("podman\0wait\0agent\0")
    (process / "cgroup").write_text("0::/system.slice/agent-init.service\n")
    ids = tuple(f"{digit}{'ab' * 31}a" for digit in "123")
    loop = RecreationLoop("agent", "agent:1", ids, 2 * S, S, 3, 3, 3, NOW_NS)
    monkeypatch.setattr(check.crash_loops, "recreated", lambda _seen: [loop])
    found = check._makers(tmp_path, NodeSnapshot(Looked([]), NOW_NS))
    assert found["agent"][0] == "agent-init.service"


def test_a_loop_that_has_ended_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop = RecreationLoop("agent", "agent:1", ("a", "b", "c"), 2 * S, S, 3, 3, 3, NOW_NS)
    monkeypatch.setattr(check.crash_loops, "recreated", lambda _seen: [loop])
    assert check._makers(tmp_path / "no proc", NodeSnapshot(Looked([]), NOW_NS + 60 * S)) == {}


def test_a_root_that_was_not_read_is_said_to_be_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "look", lambda *_: NodeSnapshot(Looked([0.1]), NOW_NS))
    monkeypatch.setattr(
        check,
        "probe",
        lambda *_: ProbeResult(
            [TimedRead("/pod1/memory.stat", 1_000_000, False)], "too many are dead"
        ),
    )
    findings = json.loads(CliRunner().invoke(check.command, ["--json", "--probe"]).stdout)[
        "findings"
    ]
    (found,) = [one for one in findings if one["question"] == "probe"]
    assert (found["level"], found["facts"]) == (
        "notice",
        ["the root was not read: too many are dead"],
    )
