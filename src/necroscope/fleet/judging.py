"""One bundle judged: unpacked, the same analysis as on the node, its incidents as rows of the lake.
Done by a sweep's workers.

Whatever is in a bundle came from elsewhere: it may be broken, or made to break its reader, and
costs at most its own verdict.
"""

import contextlib
import os
import resource
import signal
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any, Final

import pyarrow as pa

from necroscope.analysis.engine import diagnose
from necroscope.errors import CorruptData, NecroscopeError
from necroscope.fleet.batch_rows import rows_of
from necroscope.fleet.evidence import StoredBundle
from necroscope.fleet.lake import Lake
from necroscope.fleet.lake_files import LakeError
from necroscope.fleet.lake_tables import LAKE_TABLES
from necroscope.fleet.limits import Limits
from necroscope.fleet.opened_bundle import open_bundle
from necroscope.fleet.protocol import Batch, decode, encode
from necroscope.model.names import clean
from necroscope.model.span import Span
from necroscope.outlets.push.incident_rows import MOST_INCIDENTS, incident_rows
from necroscope.store.query import Store

LIMIT_S: Final = 300.0
_DATA_LIMIT_BYTES: Final = 3 << 30
_TABLE: Final = "incidents"
_SWEEP: Final = "sweep"
# A hundred incidents with long reports; what a node may send at once is less.
_LIMITS: Final = Limits(inflated_bytes=64 << 20)


@dataclass(frozen=True, slots=True)
class BundleJudgement:
    """Rows of `incidents`, none where all was well; or why there are no rows.

    `broken` is for good: the bundle itself is at fault. `unread` may be otherwise next time: the
    lake or the worker was.
    """

    evidence: StoredBundle
    rows: pa.Table
    broken: str | None = None
    unread: str | None = None


def without_rows(
    evidence: StoredBundle, *, broken: str | None = None, unread: str | None = None
) -> BundleJudgement:
    return BundleJudgement(evidence, LAKE_TABLES[_TABLE].empty_table(), broken, unread)


def prepare_worker() -> None:
    """One bundle needs one core: the next one is another worker's. Too much memory is an error
    here, not the machine's end.
    """
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    pa.set_cpu_count(1)
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft == resource.RLIM_INFINITY or soft > _DATA_LIMIT_BYTES:
        with contextlib.suppress(ValueError, OSError):
            resource.setrlimit(resource.RLIMIT_DATA, (_DATA_LIMIT_BYTES, hard))


def read_and_judge(lake: Lake, evidence: StoredBundle, now_ns: int) -> BundleJudgement:
    try:
        content = lake.read(evidence.path)
    except LakeError as error:
        return without_rows(evidence, unread=error.facts)
    return judge(evidence, content, now_ns)


def judge(
    evidence: StoredBundle, content: bytes, now_ns: int, limit_s: float = LIMIT_S
) -> BundleJudgement:
    """`now_ns` becomes `analysed_ns`: one number for all of a sweep, so that its rows do not depend
    on who judged when.
    """
    try:
        with _at_most(limit_s), tempfile.TemporaryDirectory(prefix="necroscope-sweep-") as work:
            rows = _incidents(open_bundle(content, Path(work) / "recording"), now_ns)
            return BundleJudgement(evidence, _as_lake_rows(rows, evidence, now_ns))
    except NecroscopeError as error:
        return without_rows(evidence, broken=clean(error.facts, 300))
    except OSError as error:
        cause = clean(f"its analysis failed: {error}", 300)
        # Arrow's own errors about a file's content are of this class too, and have no number.
        return (
            without_rows(evidence, broken=cause)
            if error.errno is None
            else without_rows(evidence, unread=cause)
        )
    except Exception as error:  # noqa: BLE001 - a bundle can be wrong in more ways than can be named
        return without_rows(
            evidence, broken=clean(f"its analysis failed: {type(error).__name__}: {error}", 300)
        )


def _incidents(store: Store, now_ns: int) -> list[dict[str, Any]]:
    info = store.info()
    if info.from_ns is None or info.to_ns is None:
        raise CorruptData("the bundle holds no segment")
    window = Span(info.from_ns, info.to_ns + 1)
    return incident_rows(diagnose(store, span=window).wrong[:MOST_INCIDENTS], None, now_ns)


def _as_lake_rows(rows: list[dict[str, Any]], evidence: StoredBundle, now_ns: int) -> pa.Table:
    """Through the same door as what nodes send: times, types and texts are checked there."""
    if not rows:
        return LAKE_TABLES[_TABLE].empty_table()
    columns = {name: [row[name] for row in rows] for name in rows[0]} | {
        "bundle": [evidence.id] * len(rows)
    }
    batch = Batch(evidence.node, _SWEEP, _SWEEP, now_ns, {}, {_TABLE: columns})
    return rows_of(decode(encode(batch), _LIMITS, now_ns), evidence.cluster, now_ns, now_ns)[_TABLE]


@contextlib.contextmanager
def _at_most(seconds: float) -> Iterator[None]:
    """For the main thread of a worker. An alarm that was set before is set again."""

    def end(_: int, __: FrameType | None) -> None:
        raise CorruptData(f"its analysis takes longer than {seconds:.0f} s")

    before = signal.signal(signal.SIGALRM, end)
    alarm = signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
        signal.setitimer(signal.ITIMER_REAL, *alarm)
