"""What is a place, and what cannot be a cause."""

import pytest

from necroscope.fleet.cohorts import fact_rules


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("label", "zone"),
        ("label", "topology.kubernetes.io/zone"),
        ("label", "rack"),
        ("cloud", "availability_zone"),
        ("cloud", "region"),
        ("label", "cluster"),
        ("label", "subnet-id"),
    ],
)
def test_places_are_known_by_their_names(kind: str, name: str) -> None:
    assert fact_rules.is_place(kind, name)


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("label", "image"),
        ("sysctl", "vm.zone_reclaim_mode"),
        ("unit_file", "region.service"),
        ("label", "job"),
    ],
)
def test_other_facts_are_no_places(kind: str, name: str) -> None:
    assert not fact_rules.is_place(kind, name)


@pytest.mark.parametrize(
    ("kind", "name", "reason"),
    [
        ("cloud", "instance_id", fact_rules.IDENTITY),
        ("cloud", "local_hostname", fact_rules.IDENTITY),
        ("environment", "NODE_NAME", fact_rules.IDENTITY),
        ("node", "booted", fact_rules.PASSING),
        ("boot", "userspace_s", fact_rules.PASSING),
        ("sysctl", "kernel.tainted", fact_rules.CONSEQUENCE),
        ("nic", "eth0 resets", fact_rules.CONSEQUENCE),
        ("nic", "eth0 reset_count", fact_rules.CONSEQUENCE),
    ],
)
def test_what_cannot_be_a_cause_is_left_out_with_its_reason(
    kind: str, name: str, reason: str
) -> None:
    assert fact_rules.reason_to_leave_out(kind, name) == reason


@pytest.mark.parametrize(
    ("kind", "name"),
    [
        ("nic", "eth0 gro_flush_timeout"),
        ("sysctl", "kernel.softlockup_panic"),
        ("sysctl", "kernel.hung_task_timeout_secs"),
        ("unit_outcome", "ecs-agent.service"),
        ("nic", "eth0 driver_version"),
        ("sysctl", "net.ipv4.ip_forward"),
        ("cgroup", "mode"),
        ("sysctl", "vm.nr_hugepages"),
        ("package", "libboot:amd64"),
    ],
)
def test_settings_are_not_mistaken_for_what_failures_leave_behind(kind: str, name: str) -> None:
    assert fact_rules.reason_to_leave_out(kind, name) is None


def test_values_of_their_own_tell_nodes_apart_and_not_kinds_of_nodes() -> None:
    assert fact_rules.has_own_values(101, 200)
    assert not fact_rules.has_own_values(40, 200)
    assert not fact_rules.has_own_values(2, 2)
