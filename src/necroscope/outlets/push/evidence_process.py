"""The evidence of a pinned window, in a short-lived process of its own: what it imports and
allocates ends with it.

`python -m necroscope.outlets.push.evidence_process RECORDING FROM_NS TO_NS SINCE_NS DIRECTORY`
writes `evidence.json` and, if the window had an incident, `bundle`.
"""

import contextlib
import os
import resource
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import pyarrow as pa

from necroscope.errors import NecroscopeError
from necroscope.fleet.bundle import make_bundle
from necroscope.model.span import Span
from necroscope.model.unwanted_modules import leave_out
from necroscope.outlets.push.incident_rows import MOST_INCIDENTS, episode_rows, incident_rows
from necroscope.segment.checksum import sync_directory, write_checked
from necroscope.segment.recording import segment_name
from necroscope.store.query import Store
from necroscope.verdicts.reading import read_incidents

EVIDENCE_FILE: Final = "evidence.json"
BUNDLE_FILE: Final = "bundle"
_NICE: Final = 19
_DATA_LIMIT_BYTES: Final = 1 << 30


def _step_back() -> None:
    """Behind all other work, on one core, with bounded memory."""
    os.setpriority(os.PRIO_PROCESS, 0, _NICE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_DATA, (_DATA_LIMIT_BYTES, _DATA_LIMIT_BYTES))
    leave_out("pandas")
    pa.set_memory_pool(pa.system_memory_pool())
    pa.set_cpu_count(1)


def make_evidence(store: Store, window: Span, since_ns: int, now_ns: int, work: Path) -> None:
    """Of incidents that went on after `since_ns`: what was over before was sent before."""
    found = [one for one in read_incidents(store, window) if one.to_ns > since_ns]
    incidents = found[:MOST_INCIDENTS]
    name = None
    if incidents:
        cores = frozenset(one.core for one in incidents if one.core is not None)
        held = [Span(one.from_ns, one.to_ns) for one in incidents]
        bundle = make_bundle(store, window, held, cores, work)
        if bundle is not None:
            name = segment_name(window.from_ns)
            (work / BUNDLE_FILE).write_bytes(bundle)
            sync_directory(work)
    content = {
        "incidents": incident_rows(incidents, name, now_ns),
        "episodes": episode_rows(incidents),
        "bundle": name,
    }
    write_checked(work / EVIDENCE_FILE, content)


def main(arguments: Sequence[str]) -> int:
    recording, from_ns, to_ns, since_ns, directory = arguments
    _step_back()
    try:
        window = Span(int(from_ns), int(to_ns))
        store = Store.open(Path(recording))
        make_evidence(store, window, int(since_ns), time.time_ns(), Path(directory))
    except (NecroscopeError, MemoryError) as error:
        print(str(error) or "out of memory", file=sys.stderr)  # noqa: T201 - the last line is reported as the cause of the gap
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
