"""The `facts` table: what changed, what is gone, and a collector that hangs."""

import os
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.synthetic_root import at_second, make_root, write_files

from necroscope.model.reading import Moment, Reading
from necroscope.model.units import NS_PER_S
from necroscope.sources.facts import collect, source
from necroscope.sources.facts.collector import FactsCollector, command
from necroscope.sources.facts.source import Facts

HOUR_NS = 3600 * NS_PER_S


class Scripted:
    """A collector that says what it is told to, one list of lines a turn."""

    def __init__(self, *turns: list[list[str]], ends: bool = True) -> None:
        self.turns = list(turns)
        self.ends = ends
        self.was_killed = False

    @property
    def has_ended(self) -> bool:
        return self.ends and not self.turns

    def lines(self) -> list[list[str]]:
        return self.turns.pop(0) if self.turns else []

    def kill(self) -> None:
        self.was_killed = True

    @property
    def status(self) -> int | None:
        return -9 if self.was_killed else None

    def end(self, seconds: float) -> None:
        self.kill()


def facts_of(*pairs: tuple[str, str, str], end: bool = True) -> list[list[str]]:
    return [["stage", "kernel"], *(["fact", *pair] for pair in pairs), *([["end"]] if end else [])]


def make(
    root: Path, *collectors: Scripted, labels: dict[str, str] | None = None
) -> tuple[Facts, list[Any]]:
    started: list[Any] = []
    waiting = list(collectors)

    def start(arguments: list[str], known: dict[str, str]) -> Any:
        started.append((arguments, dict(known)))
        return waiting.pop(0)

    return Facts(root, HOUR_NS, labels, make=start), started


def rows(reading: Reading) -> dict[tuple[object, object], object]:
    return {(kind, name): value for _, kind, name, value in reading.rows.get("facts", [])}


def test_facts_come_as_they_are_reported_with_the_labels(tmp_path: Path) -> None:
    facts, _ = make(
        tmp_path, Scripted(facts_of(("kernel", "release", "5.15"))), labels={"zone": "a"}
    )
    reading = facts.read(at_second(0))
    assert rows(reading) == {("label", "zone"): "a", ("kernel", "release"): "5.15"}
    assert facts.read(at_second(1)).rows == {}
    facts.close()


def test_the_next_collection_writes_what_changed_and_what_is_gone(tmp_path: Path) -> None:
    first = facts_of(("kernel", "release", "5.15"), ("module", "ena", "1"), ("module", "x", "1"))
    second = facts_of(("kernel", "release", "5.15"), ("module", "ena", "2"))
    facts, started = make(tmp_path, Scripted(first), Scripted(second), labels={"zone": "a"})
    facts.read(at_second(0))
    facts.read(at_second(100))
    assert len(started) == 1
    assert rows(facts.read(at_second(3601))) == {("module", "ena"): "2", ("module", "x"): None}
    facts.close()


def test_a_stage_in_trouble_makes_no_fact_disappear(tmp_path: Path) -> None:
    second = [["trouble", "services", "the bus is down"], *facts_of()]
    facts, _ = make(
        tmp_path, Scripted(facts_of(("unit_file", "a.service", "enabled"))), Scripted(second)
    )
    facts.read(at_second(0))
    reading = facts.read(at_second(3601))
    assert rows(reading) == {}
    assert reading.trouble is not None
    assert reading.trouble.facts == "services: the bus is down"
    assert facts.read(at_second(3602)).trouble is reading.trouble
    facts.close()


def test_a_new_segment_has_all_facts_but_packages_which_come_hourly(tmp_path: Path) -> None:
    found = facts_of(
        ("kernel", "release", "5.15"), ("package", "bash", "5"), ("packages", "count", "1")
    )
    facts, _ = make(tmp_path, Scripted(found), Scripted(found))
    assert ("package", "bash") in rows(facts.read(at_second(0)))
    facts.start_segment()
    assert rows(facts.read(at_second(300))) == {
        ("kernel", "release"): "5.15",
        ("packages", "count"): "1",
    }
    assert rows(facts.read(at_second(3601))) == {("package", "bash"): "5"}
    facts.close()


def test_hashes_are_remembered_for_the_next_collection_and_gone_programs_forgotten(
    tmp_path: Path,
) -> None:
    hashed = [
        ["stage", "executables"],
        ["hash", "1:2:3:4", "aa"],
        ["fact", "executable", "/bin/a", "aa"],
    ]
    facts, started = make(
        tmp_path, Scripted(facts_of(), hashed), Scripted(facts_of(), [["stage", "executables"]])
    )
    facts.read(at_second(0))
    assert rows(facts.read(at_second(1))) == {("executable", "/bin/a"): "aa"}
    facts.read(at_second(3601))
    assert rows(facts.read(at_second(3602))) == {("executable", "/bin/a"): None}
    assert started[1][1] == {"1:2:3:4": "aa"}
    facts.close()


def test_a_stage_that_hangs_is_left_behind_and_the_rest_collected_without_it(
    tmp_path: Path,
) -> None:
    hanging = Scripted(
        [["stage", "kernel"], ["fact", "kernel", "release", "5.15"], ["stage", "packages"]],
        ends=False,
    )
    facts, started = make(
        tmp_path, hanging, Scripted(facts_of(("kernel", "release", "5.15"))), Scripted(facts_of())
    )
    facts.read(at_second(0))
    assert facts.read(at_second(59)).trouble is None
    trouble = facts.read(at_second(61)).trouble
    assert trouble is not None
    assert trouble.facts == "collecting facts hung in packages"
    assert hanging.was_killed
    reading = facts.read(at_second(62))
    assert started[1][0][-2:] == ["--skip", "packages"]
    assert reading.trouble is not None
    assert reading.trouble.facts == "packages hung"
    assert facts.read(at_second(3700)).trouble is None, "tried again an hour later"
    assert "--skip" not in started[2][0]
    facts.close()


def test_a_package_database_that_changes_starts_a_collection(tmp_path: Path) -> None:
    write_files(tmp_path, {"var/lib/dpkg/status": "x"})
    facts, started = make(tmp_path, Scripted(facts_of()), Scripted(facts_of()))
    for second in (0, 61, 122):
        facts.read(at_second(second))
        facts._watch.wait(5)
        facts.read(at_second(second + 1))
        if second == 61:
            os.utime(tmp_path / "var/lib/dpkg/status", ns=(1, 1))
    facts.read(at_second(124))
    assert len(started) == 2
    facts.close()


def test_no_more_facts_than_the_bound_are_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "FACT_LIMIT", 3)
    facts, _ = make(
        tmp_path, Scripted(facts_of(*(("module", str(number), "1") for number in range(9))))
    )
    assert len(rows(facts.read(at_second(0)))) == 3
    facts.close()


def finished(facts: Facts, seconds: float = 20) -> dict[tuple[object, object], object]:
    """All rows until the collector has ended."""
    found: dict[tuple[object, object], object] = {}
    deadline = time.monotonic() + seconds
    while (facts._collector is not None or not found) and time.monotonic() < deadline:
        found |= rows(facts.read(Moment(time.time_ns(), time.monotonic_ns())))
        time.sleep(0.05)
    return found


def test_a_real_collector_collects_from_a_root(tmp_path: Path) -> None:
    make_root(tmp_path, 2)
    write_files(tmp_path, {"etc/os-release": "ID=test\n", "proc/sys/kernel/osrelease": "6.1\n"})
    facts = Facts(tmp_path, HOUR_NS, {"zone": "a"})
    found = finished(facts)
    assert (found["label", "zone"], found["os", "id"], found["kernel", "release"]) == (
        "a",
        "test",
        "6.1",
    )
    assert (found["memory", "total_mib"], found["cgroup", "mode"]) == ("1160578", "v1")
    facts.close()


def test_a_real_collector_that_hangs_is_killed_and_not_waited_for(tmp_path: Path) -> None:
    hanging = [
        sys.executable,
        "-c",
        'import time; print(\'["stage", "mounts"]\', flush=True); time.sleep(100)',
    ]
    made: list[FactsCollector] = []

    def start(_: list[str], known: dict[str, str]) -> FactsCollector:
        made.append(FactsCollector(hanging, known))
        return made[-1]

    facts = Facts(tmp_path, HOUR_NS, make=start)
    deadline = time.monotonic() + 20
    while facts._stage != "mounts" and time.monotonic() < deadline:
        facts.read(Moment(0, NS_PER_S))
    began = time.monotonic()
    assert facts.read(Moment(0, 100 * NS_PER_S)).trouble is not None
    assert time.monotonic() - began < 1
    made[0].wait(10)
    facts.close()
    assert all(collector.status is not None for collector in made)


def test_stages_that_fail_do_not_cost_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(_: Path) -> list[Any]:
        raise RuntimeError("boom")

    monkeypatch.setitem(collect.STAGES, "kernel", broken)
    found = list(collect.lines(make_root(tmp_path, 2), {"packages"}, {}, is_metadata_asked=False))
    assert ["trouble", "kernel", "internal error: RuntimeError('boom')"] in found
    assert ["fact", "memory", "total_mib", "1160578"] in found
    assert ["stage", "packages"] not in found
    assert found.index(["end"]) < found.index(["stage", "executables"])


def test_the_metadata_service_is_asked_only_when_wanted() -> None:
    assert "--metadata" not in command(Path("/"), set(), is_metadata_asked=False)
    assert "--metadata" in command(Path("/"), set(), is_metadata_asked=True)
