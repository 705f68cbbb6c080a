"""The ledger of a trial, one JSON file: what is done to which node is written down before it is
done, and how it ended after it.

A node goes from `chosen` over `applying` to `applied`, and from there over `reverting` to
`reverted`. One that is found `applying` or `reverting` is one whose step was cut off: the step is
done again, so it must be one that may be done twice. `failed` did not take the treatment and was
reverted; `stuck` could not be reverted, and is tried again by the next `revert`.
"""

import contextlib
import fcntl
import json
import os
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import Any, Final

from necroscope.errors import UsageError
from necroscope.fleet.lake_tables import NodeKey

SCHEMA: Final = 1
SUFFIX: Final = ".trial.json"
_LARGEST_BYTES: Final = 16 << 20
# Fewer on a side cannot tell anything.
_LEAST: Final = 3


class NodeState(StrEnum):
    CHOSEN = "chosen"
    APPLYING = "applying"
    APPLIED = "applied"
    FAILED = "failed"
    REVERTING = "reverting"
    REVERTED = "reverted"
    STUCK = "stuck"


@dataclass(slots=True)
class TrialNode:
    """`at_ns` is when its state was written down; `applied_ns` since when it is treated."""

    cluster: str
    node: str
    is_treated: bool
    state: NodeState = NodeState.CHOSEN
    at_ns: int = 0
    applied_ns: int | None = None
    detail: str = ""

    @property
    def needs_undo(self) -> bool:
        """Whether something of the treatment may be on it."""
        return self.state in (
            NodeState.APPLYING,
            NodeState.APPLIED,
            NodeState.REVERTING,
            NodeState.STUCK,
        )


@dataclass(slots=True)
class Trial:
    """`apply` and `revert` are commands without a shell, in which {node} and {cluster} stand for
    those of the node. `finding` and `ended_ns` are None while it runs.
    """

    what: str
    name: str
    where: str | None
    seed: int
    apply: str
    revert: str
    planned_ns: int
    nodes: list[TrialNode] = field(default_factory=list)
    started_ns: int | None = None
    finding: str | None = None
    ended_ns: int | None = None

    @property
    def treated(self) -> list[TrialNode]:
        return [node for node in self.nodes if node.is_treated]

    def as_json(self) -> dict[str, Any]:
        return {"schema": SCHEMA, **asdict(self)}


def draw_nodes(keys: Sequence[NodeKey], count: int, seed: int) -> list[TrialNode]:
    """This many nodes by lot, every other one treated. The same seed draws the same nodes."""
    if len(keys) < 2 * _LEAST or count < 2 * _LEAST:
        raise UsageError(
            f"{min(count, len(keys))} nodes are too few for a trial",
            f"it takes at least {_LEAST} on either side: choose more with --where and --nodes",
        )
    drawn = Random(seed).sample(sorted(keys), min(count, len(keys)))
    return [TrialNode(*key, is_treated=place % 2 == 0) for place, key in enumerate(drawn)]


def write_trial(path: Path, trial: Trial) -> None:
    """Whole or not at all, and durable when it returns."""
    content = json.dumps(trial.as_json(), indent=1).encode()
    try:
        with tempfile.NamedTemporaryFile(dir=path.parent, prefix=path.name, delete=False) as file:
            try:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
                os.replace(file.name, path)
            except OSError:
                os.unlink(file.name)
                raise
        directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
        try:
            os.fsync(directory)
        finally:
            os.close(directory)
    except OSError as error:
        raise UsageError(
            f"cannot write the ledger {path}: {error.strerror}",
            "nothing is done to a node before it is written down",
        ) from None


def read_trial(path: Path) -> Trial:
    try:
        with path.open("rb") as file:
            data = json.loads(file.read(_LARGEST_BYTES))
        if data.pop("schema") != SCHEMA:
            raise ValueError("another schema")
        nodes = [
            TrialNode(**{**node, "state": NodeState(node["state"])}) for node in data.pop("nodes")
        ]
        return Trial(**data, nodes=nodes)
    except FileNotFoundError:
        raise UsageError(
            f"there is no trial {path}", "plan one with: necroscope fleet trial plan"
        ) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise UsageError(
            f"{path} is not a trial: {error}", "it is damaged, or of another version"
        ) from None


@contextlib.contextmanager
def locked(path: Path) -> Iterator[None]:
    """One at a time may act on a trial."""
    descriptor = os.open(path.with_name(path.name + ".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise UsageError(
                f"another process acts on {path}", "wait for it, or end it: nothing is lost"
            ) from None
        yield
    finally:
        os.close(descriptor)


def refuse_overlap(path: Path, trial: Trial) -> None:
    """Two treatments on one node say nothing of either: UsageError if another trial has a
    node of it and has not ended.
    """
    own = {(node.cluster, node.node) for node in trial.nodes}
    for other in sorted(path.parent.glob(f"*{SUFFIX}")):
        if other.name == path.name:
            continue
        running = read_trial(other)
        shared = own & {(node.cluster, node.node) for node in running.nodes}
        if running.ended_ns is None and shared:
            first = "/".join(sorted(shared)[0])
            raise UsageError(
                f"{len(shared)} of these nodes, {first} among them, are in the trial {other}",
                "end that one first (fleet trial revert), or choose others with --where",
            )
