"""Waits of tasks added to a drawn node: who waited, from when, how long, and for what."""

from typing import Any

from tests.drawn_node import NS, DrawnNode


def wait(
    node: DrawnNode,
    second: float,
    lasts_s: float,
    comm: str = "trainer",
    pid: int = 71,
    **rest: Any,
) -> DrawnNode:
    """A wait that begins at `second`; for a core unless a stack or a kind is given."""
    kind = "blocked" if "stack" in rest else "runnable"
    given = {
        "kind": kind,
        "cpu": 1,
        "is_open": False,
        "tid": pid,
        "policy": "other",
        "cores_allowed": 2,
    } | rest
    return node.add(
        "waits", second + lasts_s, waited_ns=round(lasts_s * NS), comm=comm, pid=pid, **given
    )


def by(comm: str, pid: int, **rest: Any) -> dict[str, Any]:
    return {"by_comm": comm, "by_pid": pid, "by_tid": pid} | {
        f"by_{name}": value for name, value in rest.items()
    }
