"""The story of the zone, as a generated fleet whose truth is known: the unit and its zone are the
same nodes, and a node begins to fail when it holds this many dead cgroups, after about a week.

A bootstrap step fails in two of three zones, and the unit that waits for it never starts there. In
the third it crashes every few seconds and leaks. Nodes leak at different speeds and are rebooted
now and then, so that the count and the uptime can be told apart. Where `treated_day` is given, the
unit is disabled on half of its nodes on that day, by lot, and all of its nodes are rebooted: else
the reboot alone would seem to help for a week.
"""

import json
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa

from necroscope.fleet.lake import Lake
from necroscope.fleet.lake_tables import LAKE_TABLES
from necroscope.fleet.table_files import write_rows

DAY_NS = 86_400 * 10**9
START_NS = 1_775_001_600 * 10**9  # 2026-04-01, 00:00 UTC
UNIT = "ecs.service"
STEP = "node-bootstrap.service"
IMAGE = "amazon/amazon-ecs-agent:latest"
CLUSTER = "generated"
HOURS_A_ROW = 8
_FOLLOWING = (
    ("config_file", "/etc/resolv.conf"), ("config_file", "/etc/apt/sources.list"),
    ("package", "containerd.io"), ("package", "kubelet"), ("sysctl", "net.core.somaxconn"),
    ("sysctl", "vm.min_free_kbytes"), ("nic", "eth0 rings"), ("executable", "/usr/bin/kubelet"),
    ("mount", "/var/lib/containerd"), ("unit_file", "node-problem-detector.service"),
)  # fmt: skip


@dataclass(slots=True)
class Story:
    """`threshold` is a count of dead cgroups, or days of uptime with `by_uptime`."""

    nodes: int = 120
    days: int = 28
    seed: int = 1
    threshold: float = 58_000
    by_uptime: bool = False
    leak_a_day: float = 9_500
    spread: float = 0.25
    hits_a_day: float = 0.7
    treated_day: int | None = None
    helps: bool = True
    carriers: set[str] = field(default_factory=set)
    treated: set[str] = field(default_factory=set)
    dead: dict[str, float] = field(default_factory=dict)
    leaks: dict[str, float] = field(default_factory=dict)
    uptime_days: dict[str, float] = field(default_factory=dict)
    hit: set[str] = field(default_factory=set)
    _rows: dict[str, list[dict[str, Any]]] = field(default_factory=dict)

    def write(self, lake: Lake) -> "Story":
        rng = np.random.default_rng(self.seed)
        for number in range(self.nodes):
            self._node(f"gpu-{number:03d}", "abc"[number % 3], rng)
        for table, rows in self._rows.items():
            schema = LAKE_TABLES[table]
            columns = [
                pa.array([row.get(field.name) for row in rows], field.type) for field in schema
            ]
            write_rows(lake, table, pa.table(columns, schema=schema), "story", 1)
        self._rows.clear()
        return self

    def _node(self, node: str, zone: str, rng: np.random.Generator) -> None:
        is_carrier = zone == "a"
        if is_carrier:
            self.carriers.add(node)
        self._facts(node, zone, rng, is_carrier=is_carrier)
        for day in range(self.days):
            self._add(
                "pulses", node, day + 0.99, recorder_version="1.0", cpus=96, clock_offset_ns=5,
                span_from=_moment(day), span_to=_moment(day + 1),
            )  # fmt: skip
            self._add("jobs", node, day + 0.9, kind="ray_job", name="train", outcome="success")
        self._live(node, rng, is_carrier=is_carrier)

    def _facts(self, node: str, zone: str, rng: np.random.Generator, *, is_carrier: bool) -> None:
        facts = {
            ("label", "zone"): zone,
            ("cloud", "instance_id"): f"i-{node}",
            ("unit_file", UNIT): "enabled",
            ("unit_preset", UNIT): "enabled",
            ("unit_outcome", UNIT): "crash-loop" if is_carrier else "never-started",
            ("unit_dependency", UNIT): f"Requires={STEP}; After={STEP}",
            ("unit_file", STEP): "enabled",
            ("unit_outcome", STEP): "succeeded" if is_carrier else "failed",
            **dict.fromkeys(_FOLLOWING, "1" if is_carrier else "2"),
            **({("image", IMAGE): "sha256:5c3d"} if is_carrier else {}),
        }
        for number in range(30):
            facts["sysctl", f"noise-{number}"] = str(rng.integers(3))
        for (kind, name), value in facts.items():
            self._add("facts", node, 0, kind=kind, name=name, value=value)

    def _live(self, node: str, rng: np.random.Generator, *, is_carrier: bool) -> None:
        """Hour by hour."""
        leak = self.leak_a_day * float(np.exp(rng.normal(0, self.spread))) if is_carrier else 0.0
        uptime, is_treated = float(rng.uniform(0, 5)), False
        dead, reboot_in = leak * uptime, np.inf
        begins = 24 * self.treated_day if self.treated_day is not None and is_carrier else -1
        takes_part = bool(rng.random() < 0.5)
        for hour in range(24 * self.days):
            day = hour / 24
            if hour == begins:
                reboot_in = 0.0
                is_treated = takes_part
                if is_treated:
                    self.treated.add(node)
                    self._add("facts", node, day, kind="unit_file", name=UNIT, value="disabled")
            if reboot_in <= 0:
                uptime, dead, reboot_in = 0.0, 0.0, np.inf
            if hour % HOURS_A_ROW == 0:
                self._gauges(node, day, uptime, dead, rng)
            size = uptime if self.by_uptime else dead
            is_due = is_carrier and size >= self.threshold
            hazard = self.hits_a_day if is_due else 0.0005
            if rng.random() < hazard / 24:
                self._hit(node, day + rng.random() / 24, rng, is_due=is_due)
                reboot_in = min(reboot_in, 24 * float(rng.uniform(0.2, 2)))
            uptime += 1 / 24
            dead += (0.0 if is_treated and self.helps else leak) / 24 * float(rng.uniform(0.7, 1.3))
            reboot_in -= 1
        self.dead[node], self.leaks[node], self.uptime_days[node] = dead, leak, uptime

    def _gauges(
        self, node: str, day: float, uptime: float, dead: float, rng: np.random.Generator
    ) -> None:
        sizes = {
            "uptime_s": uptime * 86_400,
            "dead_cgroups": round(dead + rng.integers(20, 60)),
            "live_cgroups": float(rng.integers(200, 260)),
            "busy_cores": float(rng.uniform(5, 90)),
        }
        for name, value in sizes.items():
            self._add("gauges", node, day, name=name, value=float(value))

    def _hit(self, node: str, day: float, rng: np.random.Generator, *, is_due: bool) -> None:
        self.hit.add(node)
        number = len(self._rows.get("events", ()))
        self._add(
            "events", node, day, boot_id="b", source_sequence=number, kind="nic_reset", message="m"
        )
        self._add(
            "jobs", node, day + 0.01, kind="ray_job", name="train", outcome="failure", detail=None
        )
        chain = [["container", "ecs-agent"], ["image", IMAGE]] if is_due else None
        if rng.random() < 0.85:
            self._add(
                "incidents", node, day, end=_moment(day) + 10**9, id=f"i{number}", core=39,
                mode="system", confidence=0.9, culprit_comm="kubelet", title="t", summary="s",
                cause="zombie-memcg-walk" if is_due else "nic-device-fault",
                origin_kind="unit" if is_due else "device",
                origin_name=UNIT if is_due else "eth0",
                origin_chain=json.dumps(chain) if chain else None, events='["nic_reset"]',
                report='{"id": "generated"}', analysed_by="1.0", analysed_ns=1,
            )  # fmt: skip

    def _add(self, table: str, node: str, day: float, **columns: Any) -> None:
        self._rows.setdefault(table, []).append(
            {"cluster": CLUSTER, "node": node, "time": _moment(day), **columns}
        )


def _moment(day: float) -> int:
    return START_NS + round(day * DAY_NS)
