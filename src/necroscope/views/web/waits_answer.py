"""What the lane of waits shows: who waited, how long, for what, and behind whom."""

from typing import Any, Final

from necroscope.analysis.wait_channels import channel_of, is_release
from necroscope.store.longest_waits import LongestWaits, WaitGroup

_MOST_GROUPS: Final = 10
_RUNNABLE: Final = "runnable"
# As they are in the table.
_PLAIN: Final = (
    *("kind", "is_open", "cpu", "pid", "tid", "comm", "cgroup", "policy", "priority"),
    *("cores_allowed", "by_pid", "by_tid", "by_comm", "by_cgroup", "by_policy"),
)
_STACKS: Final = ("stack", "by_stack")


def waits_answer(found: LongestWaits) -> dict[str, Any]:
    """Stacks by number, because most waits share theirs; moments as digits."""
    stacks: dict[str, int] = {}
    waits = [_wait(row, stacks) for row in found.rows]
    shown = found.groups[:_MOST_GROUPS]
    return {
        "groups": [_group(group) for group in shown],
        "more_groups": len(found.groups) - len(shown),
        "waits": waits,
        "stacks": [text.split(";") for text in stacks],
        "count": found.count,
        "left_out": found.left_out,
    }


def _group(group: WaitGroup) -> dict[str, Any]:
    return {
        "kind": group.kind,
        "comm": group.comm,
        "by_comm": group.by_comm,
        "count": group.count,
        "total_ms": group.total_ns / 1e6,
        "worst_ms": group.worst_ns / 1e6,
    }


def _wait(row: dict[str, Any], stacks: dict[str, int]) -> dict[str, Any]:
    numbers = {
        name: stacks.setdefault(row[name], len(stacks)) if row[name] else None for name in _STACKS
    }
    ran_ns = row["by_ran_ns"]
    return {
        **{name: row[name] for name in _PLAIN},
        **numbers,
        **_channel(row),
        "time": str(row["time"]),
        "waited_ms": row["waited_ns"] / 1e6,
        "by_ran_ms": None if ran_ns is None else ran_ns / 1e6,
    }


def _channel(row: dict[str, Any]) -> dict[str, Any]:
    """What it waited for, and whether who ended it gave a lock back."""
    if row["kind"] == _RUNNABLE:
        return {"what": f"for core {row['cpu']}", "lock": None, "is_given_back": False}
    stack, by_stack = (tuple((row[name] or "").split(";")) if row[name] else () for name in _STACKS)
    channel = channel_of(row["kind"], stack, by_stack)
    given = not row["is_open"] and is_release(row["kind"], by_stack)
    return {"what": channel.words, "lock": channel.name, "is_given_back": given}
