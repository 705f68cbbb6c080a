"""Jobs drawn in a few words: members of nodes with how they stood and ended, on one clock."""

from typing import Any

from necroscope.analysis.jobs.member import JobNode, Member, NodeEvent, NodeIncident, Stop
from necroscope.model.span import Span

NS = 1_000_000_000
START_NS = 1_760_000_000 * NS
JOB = "torch/train"
TIMED_OUT = "RuntimeError: [gloo/unbound_buffer.cc:78] Timed out waiting 5000ms for recv operation"
CLOSED = "RuntimeError: [gloo/pair.cc:553] Connection closed by peer [10.0.0.2]:4711."
EXIT_1, SIGKILL, SIGTERM = 1 << 8, 9, 15


def at(seconds: float) -> int:
    return START_NS + round(seconds * NS)


def rank(
    number: int, node: str, stop: Stop | None = None, ended: float | None = None, **more: Any
) -> Member:
    """Process 100 and its number, started at 0."""
    status = more.pop("status", None if ended is None else EXIT_1)
    return Member(
        node=node,
        job=JOB,
        kind="torch",
        role="rank",
        pid=100 + number,
        comm="python",
        started_ns=at(more.pop("started", 0)),
        rank=number,
        world_size=more.pop("world_size", 3),
        ended_ns=None if ended is None else at(ended),
        status=status,
        stop=stop,
        seen_ns=at(100),
        **more,
    )


def held(how: str, start: float, end: float, core: int = 1, by: str | None = None) -> Stop:
    return Stop(how, at(start), at(end), core, by, 666 if by else None, None)


def seen(
    node: str,
    *found: NodeEvent | NodeIncident,
    until: float = 200,
    error_s: float | None = 0.01,
) -> JobNode:
    return JobNode(
        node,
        Span(at(-100), at(until)),
        None if error_s is None else round(error_s * NS),
        tuple(one for one in found if isinstance(one, NodeEvent)),
        tuple(one for one in found if isinstance(one, NodeIncident)),
    )


def incident(cause: str, start: float, end: float, core: int | None = 1, pid: int = 666) -> Any:
    return NodeIncident(
        f"{cause}-1", at(start), at(end), core, cause, 0.9, "a title", f"hog[{pid}]", pid, "/hog"
    )


def oom(pid: int, second: float, *, by_kernel: bool = True) -> NodeEvent:
    return NodeEvent(at(second), "oom_kill", f"Killed process {pid} (python)", by_kernel, pid)


def reset(second: float, *, by_kernel: bool = True) -> NodeEvent:
    words = "e1000e 0000:00:02.0 eth0: Reset adapter unexpectedly"
    return NodeEvent(at(second), "nic_reset", words, by_kernel)
