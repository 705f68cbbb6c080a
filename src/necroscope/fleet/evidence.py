"""Evidence bundles as they lie in a lake, and which of them a version of the analysis has judged
already.

    bundles/cluster=C/date=YYYY-MM-DD/NODE--ID.bundle
    swept/VERSION/<time_ns>-<writer>.json    bundles that a sweep has judged, with incident or not

A node's own verdict counts as well: its row in `incidents` names the bundle and the version that
judged.
"""

import contextlib
import json
import re
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import date
from typing import Final

import pyarrow.compute as pc

from necroscope.fleet.lake import Lake, day_of
from necroscope.fleet.lake_files import NotInLake

BUNDLES: Final = "bundles"
NOTES: Final = "swept"
# A bundle's id holds no `--`, a node's name may.
_PATH: Final = re.compile(
    r"bundles/cluster=([^/]+)/date=(\d{4}-\d\d-\d\d)/([^/]+)--([^/]+)\.bundle"
)

Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class StoredBundle:
    """A bundle by its path. Cluster and node are those that its token stood for, whatever the
    bundle says of itself.
    """

    path: str
    cluster: str
    node: str
    id: str
    day: date

    @property
    def key(self) -> Key:
        return self.cluster, self.node, self.id

    @classmethod
    def of(cls, path: str) -> "StoredBundle | None":
        """None if it is not the path of a bundle."""
        match = _PATH.fullmatch(path)
        if match is None:
            return None
        cluster, day, node, name = match.groups()
        return cls(path, cluster, node, name, date.fromisoformat(day))


def evidence_in(
    lake: Lake, from_ns: int | None = None, clusters: Iterable[str] | None = None
) -> list[StoredBundle]:
    """The newest first, from the day of `from_ns` on."""
    first = date.min if from_ns is None else day_of(from_ns)
    wanted = None if clusters is None else set(clusters)
    found = [one for path in lake.list(BUNDLES) if (one := StoredBundle.of(path)) is not None]
    chosen = [
        one for one in found if one.day >= first and (wanted is None or one.cluster in wanted)
    ]
    return sorted(chosen, key=lambda one: (one.day, one.id, one.path), reverse=True)


def read_judged(lake: Lake, version: str) -> set[Key]:
    """What a version has judged, on the nodes or in a sweep."""
    return _in_notes(lake, version) | _in_incidents(lake, version)


def mark_judged(
    lake: Lake, version: str, judged: Iterable[StoredBundle], writer: str, now_ns: int
) -> None:
    content = {"judged": sorted(one.path for one in judged)}
    lake.put(f"{NOTES}/{version}/{now_ns:020d}-{writer}.json", json.dumps(content).encode())


def causes_before(lake: Lake, evidence: Iterable[StoredBundle]) -> dict[Key, str]:
    """What was said until now of the incidents in these bundles: the newest cause by cluster, node
    and incident.
    """
    wanted = {one.key for one in evidence}
    columns = ["cluster", "node", "bundle", "id", "analysed_ns", "cause"]
    found: dict[Key, tuple[int, str]] = {}
    for batch in lake.dataset("incidents").to_batches(
        columns=columns, filter=pc.field("bundle").is_valid()
    ):
        for cluster, node, bundle, name, *verdict in zip(
            *(column.to_pylist() for column in batch.columns), strict=True
        ):
            if (cluster, node, bundle) in wanted:
                found[cluster, node, name] = max(
                    found.get((cluster, node, name), (0, "")), (verdict[0], verdict[1])
                )
    return {key: cause for key, (_, cause) in found.items()}


def _in_notes(lake: Lake, version: str) -> set[Key]:
    found: set[Key] = set()
    for path in lake.list(f"{NOTES}/{version}"):
        # A note that cannot be read costs time, not results: its bundles are judged again.
        with contextlib.suppress(NotInLake, ValueError, KeyError, TypeError):
            noted = [StoredBundle.of(one) for one in json.loads(lake.read(path))["judged"]]
            found |= {one.key for one in noted if one is not None}
    return found


def _in_incidents(lake: Lake, version: str) -> set[Key]:
    stored = lake.dataset("incidents")
    is_ours = (pc.field("analysed_by") == version) & pc.field("bundle").is_valid()
    found: set[Key] = set()
    for batch in stored.to_batches(columns=["cluster", "node", "bundle"], filter=is_ours):
        found.update(zip(*(column.to_pylist() for column in batch.columns), strict=True))
    return found
