"""Lakes with evidence bundles: the shipped recording of a real incident, moved in time, under the
names of nodes.
"""

import functools
import tempfile
from pathlib import Path
from typing import Any

from necroscope.analysis.engine import diagnose
from necroscope.fleet.demo_lake import RecordedIncident
from necroscope.fleet.evidence import StoredBundle
from necroscope.fleet.lake import Lake, day_of
from necroscope.model.span import Span
from necroscope.outlets.push.incident_rows import incident_rows
from necroscope.segment.recording import segment_name

LAB = Path(__file__).parents[1] / "src" / "necroscope" / "lab"
RECORDING = LAB / "demo_recording"
DEMO_LAKE = LAB / "demo_lake"
MINUTE_NS = 60_000_000_000
CLUSTER = "eu-1"


INCIDENT = RecordedIncident.read(DEMO_LAKE, RECORDING)


@functools.cache
def analysed_incidents() -> list[dict[str, Any]]:
    """As the node that recorded them would push them."""
    store, window = INCIDENT.moved_store(0, "vm"), INCIDENT.window
    found = diagnose(store, span=Span(*window)).wrong
    return incident_rows(found, segment_name(window[0]), window[1])


@functools.cache
def made_bundle(minutes: int) -> tuple[str, bytes, int]:
    """Name, content and start of the recording, this many minutes later."""
    with tempfile.TemporaryDirectory() as work:
        name, content = INCIDENT.bundle(minutes * MINUTE_NS, "of-the-bundle", Path(work))
    return name, content, INCIDENT.window[0] + minutes * MINUTE_NS


def put_bundle(
    lake: Lake, node: str, minutes: int = 0, content: bytes | None = None, cluster: str = CLUSTER
) -> StoredBundle:
    name, made, start_ns = made_bundle(minutes)
    path = f"bundles/cluster={cluster}/date={day_of(start_ns)}/{node}--{name}.bundle"
    lake.put(path, made if content is None else content)
    evidence = StoredBundle.of(path)
    assert evidence is not None
    return evidence


def verdicts_in(lake: Lake) -> list[tuple[Any, ...]]:
    """All rows of `incidents` in one order, each as often as it is stored, without the time of the
    analysis.
    """
    rows = lake.dataset("incidents").to_table().drop_columns(["analysed_ns"]).to_pylist()
    return sorted(tuple(row.values()) for row in rows)
