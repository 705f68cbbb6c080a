"""The truth of a run, what was answered about it, and whether that is right."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.job_cluster.cluster import Cluster

# After the first death, when each is asked; the answer counts if it is there within the limit.
RECORDINGS_S, LAKE_S, LIMIT_S = 18.0, 22.0, 30.0


@dataclass(frozen=True)
class Truth:
    """`blames` are the right answers. A machine also needs the node, the core if one was held, and
    one of `names` as culprit, origin or cause.
    """

    name: str
    blames: tuple[str, ...]
    node: str = ""
    core: int | None = None
    names: tuple[str, ...] = ()

    @property
    def is_fault(self) -> bool:
        return "machine" in self.blames


def judge(truth: Truth, answer: dict[str, Any]) -> str:
    """In what it is wrong; empty if it is right."""
    if "error" in answer:
        return str(answer["error"])
    if answer["blame"] not in truth.blames:
        return f"blames {answer['blame']}"
    if not truth.is_fault:
        return ""
    wrong = []
    if answer["node"] != truth.node:
        wrong.append(f"node {answer['node']} instead of {truth.node}")
    if truth.core is not None and answer["core"] != truth.core:
        wrong.append(f"core {answer['core']} instead of {truth.core}")
    named = f"{answer['culprit']} {answer['origin']} {answer['cause']}"
    if not any(name in named for name in truth.names):
        wrong.append(f"{named} instead of {' or '.join(truth.names)}")
    return ", ".join(wrong)


def judge_answers(cluster: Cluster, job: str, truth: Truth, died_s: float) -> dict[str, Any]:
    """Each place is asked once, at its time."""
    return {
        "recordings": _ask(cluster.ask_recordings, job, truth, died_s, RECORDINGS_S),
        "lake": _ask(cluster.ask_lake, job, truth, died_s, LAKE_S),
    }


def _ask(
    ask: Callable[[str], dict[str, Any]], job: str, truth: Truth, died_s: float, after_s: float
) -> dict[str, Any]:
    time.sleep(max(0.0, died_s + after_s - time.monotonic()))
    answer = ask(job)
    passed_s = time.monotonic() - died_s
    wrong = judge(truth, answer)
    if not wrong and passed_s > LIMIT_S:
        wrong = f"right, {passed_s:.0f} s after the death"
    return {
        "is_right": not wrong,
        "wrong": wrong,
        "after_s": round(passed_s, 1),
        "is_accused": answer.get("blame") == "machine",
        "order_known": answer.get("is_order_known"),
        "answer": answer.get("answer", ""),
        "notes": answer.get("notes", []),
    }
