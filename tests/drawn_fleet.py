"""A small lake in which a zone only seems to matter: the unit that most of its nodes run does.
Names are hostile.
"""

import json
from pathlib import Path
from typing import Any, Final

from tests.fleet_batches import NS, put_in_inbox
from tests.integration.drawn_incident import HOSTILE, drawn_incident, write

from necroscope.fleet.bundle import pack
from necroscope.fleet.compaction import Compactor
from necroscope.fleet.lake import Lake, day_of
from necroscope.fleet.protocol import Batch

VERDICT: Final = {
    "evidence": [{"text": f"core 1 was held by {HOSTILE}"}],
    "against": [],
    "fix": ["restart the agent"],
    "verify": [],
    "will_not_help": [{"what": "more cores", "why": "it is one core that is held"}],
}
HOUR_NS: Final = 3600 * NS
MINUTE_NS: Final = 60 * NS
UNIT: Final = "ecs-agent.service"
CAUSE: Final = "irq-core-collision"
BUNDLE: Final = "2026-core1"
# In zone a all but three nodes run the unit; elsewhere only two do. Of those that run it, four in
# five were reset.
NODES: Final = [(f"gpu-{number:02}", "abc"[number // 20]) for number in range(60)]
WITHOUT_UNIT: Final = frozenset({"gpu-03", "gpu-09", "gpu-16"})
WITH_UNIT: Final = frozenset({"gpu-27", "gpu-45"})

# On these somebody changed a setting two hours before the end.
CHANGED: Final = frozenset({"gpu-00", "gpu-01", "gpu-02"})


# A job of two ranks, the first of which stands on the core of gpu-00's newest incident.
JOB: Final = "slurm/4711"
JOB_NODES: Final = ("gpu-00", "gpu-20")


def runs_unit(node: str, zone: str) -> bool:
    return node in WITH_UNIT or (zone == "a" and node not in WITHOUT_UNIT)


def is_affected(node: str, zone: str) -> bool:
    return runs_unit(node, zone) and int(node[-2:]) % 5 != 4


def drawn_fleet(directory: Path, now_ns: int) -> Lake:
    """A lake whose newest data is of `now_ns`."""
    lake = Lake.open(str(directory))
    batches = [_batch(node, zone, place, now_ns) for place, (node, zone) in enumerate(NODES)]
    put_in_inbox(lake, now_ns, "drawn", *batches)
    Compactor(lake, "drawn", lambda: now_ns).compact()
    evidence = pack(write(directory.parent / f"{directory.name}-evidence", drawn_incident()))
    lake.put(
        f"bundles/cluster=eu-1/date={day_of(now_ns - HOUR_NS)}/gpu-00--{BUNDLE}.bundle", evidence
    )
    return lake


def _batch(node: str, zone: str, place: int, now_ns: int) -> Batch:
    begun_ns = now_ns - 30 * HOUR_NS
    moments = (
        [now_ns - HOUR_NS - (place * 7 + turn * 11) % 28 * HOUR_NS for turn in range(3)]
        if is_affected(node, zone)
        else []
    )
    moments = [now_ns - HOUR_NS, *moments[1:]] if node == "gpu-00" else moments
    labels = {"zone": zone, "image": "v2" if place % 3 else "v1"} | (
        {"note": HOSTILE} if node == "gpu-01" else {}
    )
    tables = {
        "pulses": _pulses(begun_ns, now_ns),
        "facts": _facts(
            node, zone, place, begun_ns, labels, now_ns - 2 * HOUR_NS if node in CHANGED else None
        ),
        "events": _events(moments, now_ns),
        "incidents": _incidents(moments, node, now_ns),
        "core_minutes": _cores(moments or [now_ns - HOUR_NS], is_held=bool(moments)),
        "stack_minutes": _stacks(moments or [now_ns - HOUR_NS], is_held=bool(moments)),
    }
    if node in JOB_NODES:
        tables["job_members"] = _members(JOB_NODES.index(node), now_ns - HOUR_NS)
    sent = {name: rows for name, rows in tables.items() if rows["time"]}
    return Batch(node, f"boot-{node}", f"boot-{node}-0", now_ns, labels, sent)


def _pulses(begun_ns: int, now_ns: int) -> dict[str, list[Any]]:
    times = [*range(begun_ns, now_ns, HOUR_NS), now_ns - MINUTE_NS]
    count = len(times)
    return {
        "time": times,
        "cpus": [96] * count,
        "span_from": [begun_ns] * count,
        "span_to": [now_ns] * count,
    }


def _facts(
    node: str, zone: str, place: int, time_ns: int, labels: dict[str, str], changed_ns: int | None
) -> dict[str, list[Any]]:
    facts = {
        ("sysctl", "kernel.watchdog"): "1",
        ("unit_file", UNIT): "enabled" if runs_unit(node, zone) else "disabled",
        ("sysctl", "vm.swappiness"): "10" if zone == "a" else "60",
        ("kernel", "release"): f"6.1.{place % 2}",
        ("node", "hostname"): node,
        **{("label", name): value for name, value in labels.items()},
    }
    rows = [(time_ns, kind, name, value) for (kind, name), value in facts.items()]
    rows += [(changed_ns, "sysctl", "kernel.watchdog", "0")] if changed_ns is not None else []
    return {
        name: [row[place] for row in rows]
        for place, name in enumerate(("time", "kind", "name", "value"))
    }


def _events(moments: list[int], now_ns: int) -> dict[str, list[Any]]:
    count = len(moments)
    restarts = [now_ns - 2 * HOUR_NS]
    return {
        "time": [*moments, *restarts],
        "boot_id": ["boot"] * (count + 1),
        "source_sequence": list(range(count + 1)),
        "kind": ["nic_reset"] * count + ["unit_restart"],
        "cpu": [1] * count + [None],
        "device": ["eth0"] * count + [None],
        "message": [f"reset {HOSTILE}"] * count + ["restarted"],
    }


def _incidents(moments: list[int], node: str, now_ns: int) -> dict[str, list[Any]]:
    newest = max(moments, default=0)
    return {
        "time": moments,
        "end": [time_ns + 6 * NS for time_ns in moments],
        "id": [f"{time_ns}-core1" for time_ns in moments],
        "core": [1] * len(moments),
        "mode": ["system"] * len(moments),
        "cause": [CAUSE] * len(moments),
        "confidence": [0.9] * len(moments),
        "title": ["a poll waits behind a task in the kernel"] * len(moments),
        "summary": [f"collector {HOSTILE} held core 1 for 6 s"] * len(moments),
        "culprit_comm": [HOSTILE if node == "gpu-01" else "collector"] * len(moments),
        "culprit_unit": ["collector.service"] * len(moments),
        "origin_kind": ["unit"] * len(moments),
        "origin_name": [UNIT] * len(moments),
        "events": ['["nic_reset"]'] * len(moments),
        "report": [json.dumps({"verdict": VERDICT})] * len(moments),
        "bundle": [
            BUNDLE if node == "gpu-00" and time_ns == newest else None for time_ns in moments
        ],
        "analysed_by": ["0"] * len(moments),
        "analysed_ns": [now_ns] * len(moments),
    }


def _members(rank: int, held_ns: int) -> dict[str, list[Any]]:
    row = {
        "time": held_ns + 8 * NS,
        "job": JOB,
        "kind": "torch",
        "role": "rank",
        "rank": rank,
        "world_size": 2,
        "pid": 100 + rank,
        "comm": "python",
        "started_ns": held_ns - HOUR_NS,
        "ended_ns": held_ns + 8 * NS,
        "status": 256,
        "words": f"RuntimeError: Connection closed by peer {HOSTILE}",
        "stop_how": "waiting" if rank else "starved",
        "stop_from": held_ns,
        "stop_to": held_ns + 8 * NS,
        "stop_core": None if rank else 1,
        "analysed_ns": held_ns + 10 * NS,
    }
    return {name: [value] for name, value in row.items()}


def _cores(moments: list[int], *, is_held: bool) -> dict[str, list[Any]]:
    minutes = [time_ns // MINUTE_NS * MINUTE_NS for time_ns in moments]
    shares = {
        name: [0.1] * len(minutes) for name in ("user", "system", "irq", "softirq", "steal", "idle")
    }
    worst = {
        f"worst_{name}": [1.0 if is_held else 0.2] * len(minutes) for name in ("busy", "system")
    }
    return {
        "time": minutes,
        "cpu": [1] * len(minutes),
        "ticks": [60] * len(minutes),
        **shares,
        **worst,
    }


def _stacks(moments: list[int], *, is_held: bool) -> dict[str, list[Any]]:
    minute_ns = max(moments) // MINUTE_NS * MINUTE_NS
    held = (
        [("collector", "main;read;entry_SYSCALL_64;do_syscall_64;vfs_read;timer_list_show", 900)]
        if is_held
        else []
    )
    rows = [("worker", "main;compute;multiply", 3000), (HOSTILE, f"main;{HOSTILE}", 50), *held]
    return {
        "time": [minute_ns] * len(rows),
        "comm": [comm for comm, _, _ in rows],
        "path": [path for _, path, _ in rows],
        "samples": [samples for _, _, samples in rows],
        "period_ns": [10_000_000] * len(rows),
    }
