"""Lakes drawn as Python: nodes with facts, events, jobs and minute stacks, written by the
collector's own writer.
"""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from necroscope.fleet.lake import Lake
from necroscope.fleet.lake_tables import LAKE_TABLES
from necroscope.fleet.table_files import write_rows

NS = 10**9
DAY_NS = 86400 * NS
# 2026-04-01, 00:00 UTC.
START_NS = 1_775_001_600 * 10**9
CLUSTER = "eu-1"
UNIT = "ecs-agent.service"


class DrawnLake:
    """Rows are gathered, then written at once."""

    def __init__(self, place: Path | str) -> None:
        self.lake = Lake.open(str(place))
        self._rows: dict[str, list[dict[str, Any]]] = {}
        self._sequence = 0

    def add(
        self, table: str, node: str, time_ns: int, cluster: str = CLUSTER, **columns: Any
    ) -> None:
        self._rows.setdefault(table, []).append(
            {"cluster": cluster, "node": node, "time": time_ns, **columns}
        )

    def fact(
        self,
        node: str,
        kind: str,
        name: str,
        value: str | None,
        day: float = 0,
        cluster: str = CLUSTER,
    ) -> None:
        self.add("facts", node, moment(day), cluster, kind=kind, name=name, value=value)

    def event(self, node: str, kind: str, day: float, cluster: str = CLUSTER) -> None:
        self._sequence += 1
        self.add(
            "events",
            node,
            moment(day),
            cluster,
            boot_id="b",
            source_sequence=self._sequence,
            kind=kind,
            message="m",
        )

    def alive(self, node: str, days: Iterable[int], cluster: str = CLUSTER) -> None:
        for day in days:
            span = {"span_from": moment(day), "span_to": moment(day + 1)}
            self.add(
                "pulses",
                node,
                moment(day + 0.99),
                cluster,
                recorder_version="1.0",
                cpus=96,
                clock_offset_ns=5,
                **span,
            )

    def job(self, node: str, name: str, outcome: str, day: float, kind: str = "unit") -> None:
        self.add("jobs", node, moment(day), kind=kind, name=name, outcome=outcome)

    def stack(
        self,
        node: str,
        path: str,
        samples: int,
        day: float,
        comm: str = "kubelet",
        period_ns: int = 10_000_000,
    ) -> None:
        self.add(
            "stack_minutes",
            node,
            moment(day),
            comm=comm,
            path=path,
            samples=samples,
            period_ns=period_ns,
        )

    def incident(
        self,
        node: str,
        identity: str,
        cause: str,
        day: float,
        analysed_ns: int = 1,
        **others: Any,
    ) -> None:
        columns: dict[str, Any] = {
            "end": moment(day) + 10**9, "id": identity, "core": 3, "mode": "system", "cause": cause, "confidence": 0.9,
            "title": "t", "summary": "s", "culprit_comm": "kubelet", "origin_kind": "unit", "origin_name": UNIT,
            "events": '["nic_reset"]',
            "report": '{"id": "x"}', "analysed_by": "1.0", "analysed_ns": analysed_ns,
        }  # fmt: skip
        self.add("incidents", node, moment(day), **{**columns, **others})

    def member(self, node: str, job: str, rank: int | None, day: float, **others: Any) -> None:
        """A rank of a job that started an hour before `day` and ended then, well unless `others`
        say how; times in them are seconds from `day`.
        """
        columns: dict[str, Any] = {
            "job": job, "kind": "torch", "role": "rank", "rank": rank, "pid": 100 + (rank or 0),
            "comm": "python", "started_ns": moment(day) - 3600 * NS, "ended_ns": moment(day),
            "status": 0, "analysed_ns": 1, "clock_offset_ns": 0, "clock_error_ns": NS // 100,
        }  # fmt: skip
        for name in ("started_ns", "ended_ns", "stop_from", "stop_to"):
            if others.get(name) is not None:
                others[name] = moment(day) + round(others[name] * NS)
        row = columns | others
        self.add("job_members", node, row["ended_ns"] or moment(day), **row)

    def gauge(self, node: str, name: str, value: float, day: float) -> None:
        self.add("gauges", node, moment(day), name=name, value=value)

    def write(self, writer: str = "w1", now_ns: int = 1) -> Lake:
        for table, rows in self._rows.items():
            schema = LAKE_TABLES[table]
            columns = [
                pa.array([row.get(field.name) for row in rows], field.type) for field in schema
            ]
            write_rows(self.lake, table, pa.table(columns, schema=schema), writer, now_ns)
        self._rows.clear()
        return self.lake


def moment(day: float) -> int:
    return START_NS + round(day * DAY_NS)


def draw_story(
    place: Path | str, *, nodes: int = 60, disagree: int = 12, seed: int = 1
) -> DrawnLake:
    """Three zones; in zone a a unit crash-loops, but for `disagree` nodes; nodes with the unit have
    resets from day 2 to 8.
    """
    rng = np.random.default_rng(seed)
    drawn = DrawnLake(place)
    odd = set(rng.choice(nodes, disagree, replace=False).tolist())
    for number in range(nodes):
        node = f"gpu-{number:03d}"
        zone = "abc"[number % 3]
        has_unit = (zone == "a") != (number in odd)
        drawn.alive(node, range(10))
        drawn.fact(node, "label", "zone", zone)
        drawn.fact(node, "label", "image", f"v{rng.integers(3)}")
        drawn.fact(node, "cloud", "instance_id", f"i-{number}")
        drawn.fact(node, "unit_outcome", UNIT, "crash-loop" if has_unit else "never-started")
        drawn.fact(
            node, "config_file", "/etc/resolv.conf", "hash-a" if zone == "a" else "hash-other"
        )
        drawn.fact(node, "kernel", "release", "5.4.0")
        for fact in range(20):
            drawn.fact(node, "sysctl", f"noise{fact}", str(rng.integers(3)))
        is_affected = rng.random() < (0.8 if has_unit else 0.0)
        if is_affected:
            for day in (2 + rng.random(), 5 + rng.random(), 7 + rng.random()):
                drawn.event(node, "nic_reset", day)
            # What the failure leaves behind comes after it.
            drawn.fact(node, "nic", "eth0 state", "was reset", day=9)
        drawn.fact(node, "nic", "eth0 state", "up")
        drawn.stack(
            node, "entry;read;mem_cgroup_walk" if has_unit else "entry;read;copy", 100, day=9.9
        )
    return drawn
