"""What is true of a generated fleet: which node has which facts, which of them have the unit that
leaks, and when they were hit.

The story is that of a zone that was only a proxy. The unit is enabled everywhere, but in two of
three zones it does not start, mostly because a step of the boot fails before it. Where it starts,
it crashes and leaks. Twenty facts follow the zone; a few nodes disagree with theirs.
"""

from dataclasses import dataclass
from random import Random
from typing import Final

from necroscope.model.units import NS_PER_S

Fact = tuple[str, str]

MINUTE_NS: Final = 60 * NS_PER_S
DAY_MINUTES: Final = 1440
DAYS: Final = 7
UNIT: Final = "metrics-d.service"
BOOT_STEP: Final = "node-bootstrap.service"
UNIT_FILE: Final[Fact] = ("unit_file", UNIT)
OUTCOME: Final[Fact] = ("unit_outcome", UNIT)
STEP_OUTCOME: Final[Fact] = ("unit_outcome", BOOT_STEP)
LEAKS, NOT_STARTED = "crash-loop", "never-started"
ZONES: Final = ("us-east-1a", "us-east-1b", "us-east-1c")
ZONE_SHARES: Final = (0.36, 0.34, 0.30)
# Of the nodes: in the zone that has the unit, but without it; and in the others, but with it.
ODD_WITHOUT, ODD_WITH = 0.024, 0.02
# Of the nodes without the unit: the step succeeded, and it did not start for other reasons.
STEP_SHARE: Final = 0.12
# On these the unit was masked this long ago, to see whether it helps.
MASKED_SHARE: Final = 0.2
MASKED_DAYS: Final = 2
# Incidents a day of a node with the unit; and of others, whose network cards fail for other
# reasons.
RATE, OTHER_RATE = 0.15, 0.002

# In the first zone, and in the others.
FOLLOWING: Final[dict[Fact, tuple[str, str]]] = {
    ("config_file", "/etc/apt/sources.list"): ("5a1f0c", "c07d92"),
    ("config_file", "/etc/resolv.conf"): ("91be44", "1d2a0e"),
    ("config_file", "/etc/chrony/chrony.conf"): ("77ac10", "e3b8f5"),
    ("config_file", "/etc/docker/daemon.json"): ("0b9d3e", "4f6172"),
    ("package", "containerd.io"): ("1.7.22-1", "1.7.24-1"),
    ("package", "docker-ce"): ("27.3.1-1", "27.4.0-1"),
    ("package", "kubelet"): ("1.30.6-1.1", "1.30.8-1.1"),
    ("package", "nvidia-container-toolkit"): ("1.16.2-1", "1.17.3-1"),
    ("sysctl", "net.core.somaxconn"): ("4096", "8192"),
    ("sysctl", "net.ipv4.tcp_rmem"): ("4096 131072 6291456", "4096 87380 16777216"),
    ("sysctl", "vm.min_free_kbytes"): ("67584", "1048576"),
    ("sysctl", "kernel.numa_balancing"): ("0", "1"),
    ("nic", "eth0 rings"): ("rx 1024 of 8192, tx 1024 of 1024", "rx 4096 of 8192, tx 1024 of 1024"),
    ("nic", "eth0 coalescing"): (
        "rx 0 us, tx 64 us, adaptive rx on",
        "rx 20 us, tx 64 us, adaptive rx off",
    ),
    ("kernel", "command_line"): (
        "ro console=ttyS0 nvme_core.io_timeout=4294967295",
        "ro console=ttyS0 mitigations=off",
    ),
    ("cpu", "microcode"): ("0xd0003d1", "0xd0003e7"),
    ("executable", "/usr/bin/kubelet"): ("9b0c1f7a", "44d2e8b3"),
    ("mount", "/var/lib/containerd"): ("xfs rw,noatime", "ext4 rw,relatime"),
    ("unit_file", "node-problem-detector.service"): ("disabled", "enabled"),
    ("label", "image"): ("node-2026-09-a", "node-2026-10-b"),
}
_BY_LOT: Final[dict[Fact, tuple[str, ...]]] = {
    ("label", "instance_type"): ("p5.48xlarge", "p4d.24xlarge", "g6.48xlarge"),
    ("label", "job"): ("pretrain", "finetune", "evaluate", "serve"),
    ("kernel", "release"): ("6.8.0-1018-aws", "6.8.0-1021-aws"),
    ("thp", "enabled"): ("madvise", "always"),
    ("sysctl", "vm.swappiness"): ("60", "10"),
    ("sysctl", "net.ipv4.tcp_congestion_control"): ("cubic", "bbr"),
    ("nic", "eth0 mtu"): ("9001", "1500"),
}


@dataclass(frozen=True, slots=True)
class GeneratedNode:
    """`facts` are those in which it may differ from others, labels among them. Incidents are in
    minutes before now.
    """

    name: str
    zone: str
    facts: dict[Fact, str]
    has_unit: bool
    is_odd: bool
    is_masked: bool
    incidents: tuple[int, ...]

    @property
    def labels(self) -> dict[str, str]:
        return {
            "zone": self.zone,
            **{name: value for (kind, name), value in self.facts.items() if kind == "label"},
        }


def draw_nodes(count: int, seed: int, packages: list[str]) -> list[GeneratedNode]:
    """The same numbers always give the same fleet. `packages` are being rolled out, some further
    than others.
    """
    random = Random(seed)
    firsts = round(count * ZONE_SHARES[0])
    zones = [ZONES[0]] * firsts + random.choices(ZONES[1:], ZONE_SHARES[1:], k=count - firsts)
    without = set(random.sample(range(firsts), max(3, round(count * ODD_WITHOUT))))
    with_it = set(random.sample(range(firsts, count), max(3, round(count * ODD_WITH))))
    spread = {name: random.uniform(0.1, 0.9) for name in packages}
    numbers = random.sample(range(1, count + 1), count)
    nodes = [
        _draw_node(
            random,
            f"generated-{number:03d}",
            zones[place],
            place in without,
            place in with_it,
            spread,
        )
        for place, number in enumerate(numbers)
    ]
    return sorted(nodes, key=lambda node: node.name)


def _draw_node(
    random: Random, name: str, zone: str, is_without: bool, is_with: bool, spread: dict[str, float]
) -> GeneratedNode:
    is_first = zone == ZONES[0]
    has_unit = (is_first and not is_without) or is_with
    facts = {fact: values[0 if is_first else 1] for fact, values in FOLLOWING.items()}
    facts |= {fact: random.choice(values) for fact, values in _BY_LOT.items()}
    facts |= {
        ("package", package): "new" if random.random() < share else "old"
        for package, share in spread.items()
    }
    facts[UNIT_FILE] = "enabled"
    facts[OUTCOME] = LEAKS if has_unit else NOT_STARTED
    facts[STEP_OUTCOME] = "succeeded" if has_unit or random.random() < STEP_SHARE else "failed"
    is_masked = has_unit and random.random() < MASKED_SHARE
    ends = MASKED_DAYS * DAY_MINUTES if is_masked else 0
    incidents = _moments(random, RATE if has_unit else OTHER_RATE, ends)
    return GeneratedNode(name, zone, facts, has_unit, is_without or is_with, is_masked, incidents)


def _moments(random: Random, a_day: float, ends: int) -> tuple[int, ...]:
    """By chance, in minutes before now, the newest last; none in the last minutes, which are still
    on their way.
    """
    found = []
    minute = DAYS * DAY_MINUTES - random.expovariate(a_day / DAY_MINUTES)
    while minute > max(ends, 10):
        found.append(round(minute))
        minute -= 5 + random.expovariate(a_day / DAY_MINUTES)
    return tuple(found)
