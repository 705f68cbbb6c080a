"""A sweep: the analysis over all evidence in a lake, its verdicts back into the lake as rows of
`incidents`.

Any judge (`sweep_processes`, `sweep_ray`), in any order, makes the same rows. They are
durable before the note that says so: a sweep that is killed goes on where it stopped, and what it
had written twice is read once (the newest `analysed_ns`).
"""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import uuid4

import pyarrow as pa

from necroscope import __version__
from necroscope.fleet.evidence import (
    Key,
    StoredBundle,
    causes_before,
    evidence_in,
    mark_judged,
    read_judged,
)
from necroscope.fleet.judging import BundleJudgement
from necroscope.fleet.lake import Lake
from necroscope.fleet.table_files import write_rows

# What is held back in memory before it is written: as few files as possible, and little lost by a
# kill.
_FLUSH_BUNDLES: Final = 500
_FLUSH_BYTES: Final = 16 << 20
_FLUSH_S: Final = 20.0

# Bundles in, verdicts out as they come, in any order.
Judges = Callable[[Iterable[StoredBundle], int], Iterator[BundleJudgement]]
Progress = Callable[[int, int], None]
Tell = Callable[[str], None]


@dataclass(slots=True)
class SweepResult:
    """What a sweep came to. `known` were judged before by this version; `broken` and `unread` are
    paths and why.

    `changed` counts verdicts whose cause was another before, by the old and the new one.
    """

    bundles: int
    known: int
    judged: int = 0
    incidents: int = 0
    causes: Counter[str] = field(default_factory=Counter)
    changed: Counter[tuple[str, str]] = field(default_factory=Counter)
    broken: dict[str, str] = field(default_factory=dict)
    unread: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def as_json(self) -> dict[str, Any]:
        return {
            "bundles": self.bundles,
            "judged_before": self.known,
            "judged": self.judged,
            "incidents": self.incidents,
            "causes": dict(sorted(self.causes.items(), key=lambda item: (-item[1], item[0]))),
            "changed": [
                {"from": old, "to": new, "incidents": count}
                for (old, new), count in self.changed.most_common()
            ],
            "broken": dict(sorted(self.broken.items())),
            "unread": dict(sorted(self.unread.items())),
            "seconds": round(self.seconds, 2),
            "version": __version__,
        }


def sweep(
    lake: Lake,
    judges: Judges,
    *,
    is_again: bool = False,
    from_ns: int | None = None,
    clusters: Iterable[str] | None = None,
    progress: Progress = lambda _, __: None,
    tell: Tell = lambda _: None,
    clock_ns: Callable[[], int] = time.time_ns,
) -> SweepResult:
    """All bundles that this version has not judged yet; with `is_again` all. Ended early, it has
    kept what was judged.
    """
    began_s = time.monotonic()
    found = evidence_in(lake, from_ns, clusters)
    known = set() if is_again else read_judged(lake, __version__)
    waiting = [one for one in found if one.key not in known]
    swept = SweepResult(len(found), len(found) - len(waiting))
    before = causes_before(lake, waiting) if waiting else {}
    keeper = _Keeper(lake, clock_ns)
    try:
        for count, judgement in enumerate(judges(waiting, clock_ns()) if waiting else (), 1):
            _count(swept, judgement, before, tell)
            keeper.add(judgement)
            progress(count, len(waiting))
    finally:
        keeper.flush()
    swept.seconds = time.monotonic() - began_s
    return swept


def _count(
    swept: SweepResult, judgement: BundleJudgement, before: dict[Key, str], tell: Tell
) -> None:
    path = judgement.evidence.path
    if judgement.unread is not None:
        swept.unread[path] = judgement.unread
        tell(f"not judged: {path}: {judgement.unread}")
        return
    swept.judged += 1
    if judgement.broken is not None:
        swept.broken[path] = judgement.broken
        tell(f"broken: {path}: {judgement.broken}")
    swept.incidents += judgement.rows.num_rows
    for row in judgement.rows.select(["id", "cause"]).to_pylist():
        swept.causes[row["cause"]] += 1
        old = before.get(
            (judgement.evidence.cluster, judgement.evidence.node, row["id"]), row["cause"]
        )
        if old != row["cause"]:
            swept.changed[old, row["cause"]] += 1


class _Keeper:
    """Writes verdicts in groups."""

    def __init__(self, lake: Lake, clock_ns: Callable[[], int]) -> None:
        self._lake = lake
        self._clock_ns = clock_ns
        self._writer = uuid4().hex
        self._held: list[BundleJudgement] = []
        self._held_bytes = 0
        self._flushed_s = time.monotonic()

    def add(self, judgement: BundleJudgement) -> None:
        if judgement.unread is not None:
            return
        self._held.append(judgement)
        self._held_bytes += judgement.rows.nbytes
        is_late = time.monotonic() - self._flushed_s >= _FLUSH_S
        if is_late or len(self._held) >= _FLUSH_BUNDLES or self._held_bytes >= _FLUSH_BYTES:
            self.flush()

    def flush(self) -> None:
        """The rows first: a note must not speak of verdicts that may never come."""
        rows = [judgement.rows for judgement in self._held if judgement.rows.num_rows]
        if rows:
            write_rows(
                self._lake, "incidents", pa.concat_tables(rows), self._writer, self._clock_ns()
            )
        if self._held:
            mark_judged(
                self._lake,
                __version__,
                [one.evidence for one in self._held],
                self._writer,
                self._clock_ns(),
            )
        self._held, self._held_bytes, self._flushed_s = [], 0, time.monotonic()
