"""Writes a generated fleet into a lake, the way all comes there: batches of the protocol into the
inbox, then compaction.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Final
from uuid import uuid4

from necroscope.errors import UsageError
from necroscope.fleet.compaction import Compactor
from necroscope.fleet.generated.node_batch import node_batch
from necroscope.fleet.generated.story import Story, read_story
from necroscope.fleet.generated.truth import MINUTE_NS, GeneratedNode, draw_nodes
from necroscope.fleet.inbox import Receipt, inbox_path, pack
from necroscope.fleet.lake import Lake, day_of
from necroscope.fleet.protocol import encode

# Everything in the lake carries it: nobody shall take a generated fleet for a real one.
CLUSTER: Final = "generated"
NODES: Final = 500
BUNDLES: Final = 8
SEED: Final = 20
_TOGETHER: Final = 100
_ROLLED_OUT: Final = 20


@dataclass(frozen=True, slots=True)
class GeneratedFleet:
    """The truth, to compare an answer with."""

    nodes: list[GeneratedNode]
    bundles: int

    @property
    def affected(self) -> list[GeneratedNode]:
        return [node for node in self.nodes if node.incidents]

    @property
    def incidents(self) -> int:
        return sum(len(node.incidents) for node in self.nodes)


def write_fleet(
    lake: Lake,
    recording: Path,
    now_ns: int,
    count: int = NODES,
    bundles: int = BUNDLES,
    seed: int = SEED,
) -> GeneratedFleet:
    """`recording` is the real one it is made of; the newest `bundles` incidents come with their
    evidence.
    """
    if lake.list("inbox") or lake.list("tables"):
        raise UsageError(
            f"the lake {lake.url} is not empty", "a generated fleet goes into a lake of its own"
        )
    story = read_story(recording)
    packages = sorted(name for kind, name in story.facts if kind == "package")[:_ROLLED_OUT]
    nodes = draw_nodes(count, seed, packages)
    names = _write_bundles(lake, story, nodes, now_ns, bundles)
    collector = uuid4().hex
    receipts = (
        Receipt(
            CLUSTER,
            now_ns,
            now_ns,
            encode(node_batch(node, story, now_ns, names.get(node.name, {}))),
        )
        for node in nodes
    )
    for number, group in enumerate(_groups(receipts)):
        lake.put(inbox_path(now_ns + number, collector), pack(group))
    Compactor(lake, collector, lambda: now_ns).compact()
    return GeneratedFleet(nodes, sum(map(len, names.values())))


def _groups(receipts: Iterator[Receipt]) -> Iterator[list[Receipt]]:
    while group := list(islice(receipts, _TOGETHER)):
        yield group


def _write_bundles(
    lake: Lake, story: Story, nodes: list[GeneratedNode], now_ns: int, count: int
) -> dict[str, dict[int, str]]:
    """The names of the bundles by node and minute of the incident."""
    newest = sorted(
        (minute, node.name) for node in nodes if node.has_unit for minute in node.incidents
    )[:count]
    names: dict[str, dict[int, str]] = {}
    with tempfile.TemporaryDirectory(prefix="necroscope-generated-") as work:
        for minute, node in newest:
            by_ns = (now_ns // MINUTE_NS - minute) * MINUTE_NS - story.minute_ns
            name, content = story.bundle(by_ns, node, Path(work))
            day = day_of(story.window[0] + by_ns)
            lake.put(f"bundles/cluster={CLUSTER}/date={day}/{node}--{name}.bundle", content)
            names.setdefault(node, {})[minute] = name
    return names
