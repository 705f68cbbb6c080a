"""Every scenario is whole: a new file that forgets something fails here, not on a node."""

import re
from pathlib import Path

import pytest

from necroscope.errors import UsageError
from necroscope.lab import catalog, healthy, incidents
from necroscope.lab.scenario import Scenario

ALL = catalog.scenarios()
PARTS = ("What it does:", "Seen in the wild:", "What must be seen:")
# Design's fixed words: labels, reports and docs use them alike.
SLUGS = {
    "zombie-memcg-walk",
    "rstat-flush-contention",
    "memcg-limit-reclaim",
    "kswapd-reclaim",
    "direct-reclaim",
    "compaction-stall",
    "page-fault-storm",
    "tlb-shootdown",
    "dentry-walk",
    "path-lookup-contention",
    "mountinfo-reparse",
    "fsnotify-storm",
    "blocked-io",
    "irq-core-collision",
    "softirq-storm",
    "netfilter-rules",
    "proc-net-scan",
    "nic-device-fault",
    "spinlock-contention",
    "rt-hog",
    "cpu-quota-throttle",
    "vm-steal",
    "softirq-blackout",
    "userspace-hog",
    "periodic-job",
    "ebpf-overhead",
    "fork-exec-churn",
    "kernel-lock-convoy",
    "user-lock-convoy",
    "noisy-neighbour",
    "cpuset-squeeze",
    "writeback-stall",
    "kernel-state-walk",
    "file-lock-convoy",
    "late-heartbeat",
    "stalled-reader",
    "slow-answer",
    "interrupt-handler",
}


def test_every_file_has_one_scenario() -> None:
    files = [
        path
        for package in (incidents, healthy)
        for path in Path(package.__path__[0]).glob("[!_]*.py")
    ]
    assert len(files) == len(ALL)


@pytest.mark.parametrize("scenario", ALL.values(), ids=lambda scenario: scenario.name)
def test_a_scenario_is_whole(scenario: type[Scenario]) -> None:
    is_incident = scenario.__module__.startswith(incidents.__name__)
    assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", scenario.name)
    assert (scenario.cause in SLUGS) if is_incident else scenario.cause is None
    assert scenario.twin is None or scenario.twin in ALL
    assert set(scenario.tolerates) <= SLUGS - {scenario.cause}
    assert 10 <= scenario.seconds <= 60


@pytest.mark.parametrize("scenario", ALL.values(), ids=lambda scenario: scenario.name)
def test_a_scenario_tells_its_story(scenario: type[Scenario]) -> None:
    assert [part for part in PARTS if part not in scenario.story()] == []


def test_an_unknown_name_is_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no scenario 'nonsense'"):
        catalog.find("nonsense")


def test_what_is_missing_is_named_with_the_command_that_installs_it() -> None:
    class Needy(ALL["idle"]):  # type: ignore[name-defined, misc]
        needs = ("sh", "no-such-program", "/proc/self/stat", "/proc/no-such-file")

    assert catalog.missing_needs(Needy) == ["no-such-program", "/proc/no-such-file"]
    assert catalog.install_hint(["iptables-restore", "podman"]).endswith(" iptables podman")
