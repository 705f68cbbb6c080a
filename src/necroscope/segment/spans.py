"""A cache of when each sealed segment starts and ends, so that a window of a long recording opens
only the manifests it needs.

Names tell only the start, and a segment may reach far before it (the kernel log at the first
start). Without the cache, or where it lacks a segment, the manifests are read: it can be deleted at
any time.
"""

import contextlib
from pathlib import Path

from necroscope.errors import CorruptData
from necroscope.model.span import Extent
from necroscope.segment.checksum import read_checked, write_checked
from necroscope.segment.recording import SPANS_FILE, segment_paths


def read_spans(directory: Path) -> dict[str, Extent]:
    """First and last time by name of the segment; empty if the cache is absent or damaged."""
    with contextlib.suppress(
        OSError, CorruptData, TypeError, ValueError, AttributeError, OverflowError
    ):
        return {
            name: (int(from_ns), int(to_ns))
            for name, (from_ns, to_ns) in read_checked(directory / SPANS_FILE).items()
        }
    return {}


def add_span(directory: Path, name: str, span: Extent) -> None:
    """Put a segment in, and take those out that are gone."""
    spans = read_spans(directory) | {name: span}
    present = {path.name for path in segment_paths(directory)}
    write_checked(
        directory / SPANS_FILE, {name: spans[name] for name in sorted(spans) if name in present}
    )
