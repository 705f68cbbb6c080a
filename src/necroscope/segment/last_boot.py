"""How far a recording reaches into the boot before this one, without opening a table."""

import contextlib
from pathlib import Path

from necroscope.errors import CorruptData, RecordingError
from necroscope.model.earlier_boot import EarlierBoot
from necroscope.segment.journal_reader import JournalReader
from necroscope.segment.manifest import read_manifest
from necroscope.segment.recording import LIVE, segment_paths


def read_earlier_boot(directory: Path, boot_id: str) -> EarlierBoot | None:
    """None where nothing is recorded yet, where the newest segment is of this boot already, or
    where it does not say of which boot it is.
    """
    with contextlib.suppress(OSError, CorruptData, RecordingError):
        paths = segment_paths(directory)
        newest = max(paths, key=lambda path: path.name, default=None)
        found = _read(newest) if newest is not None else None
        if found is not None and found.boot_id not in ("", "unknown", boot_id):
            return found
    return None


def _read(path: Path) -> EarlierBoot | None:
    if not path.name.endswith(LIVE):
        manifest = read_manifest(path)
        return EarlierBoot(manifest.boot_id, manifest.to_ns, is_cut=False)
    journal = JournalReader(path, 0)
    for _ in journal.advance():
        pass
    header = journal.header
    if header is None:
        return None
    return EarlierBoot(header.boot_id, max(header.from_ns, journal.last_ns), is_cut=True)
