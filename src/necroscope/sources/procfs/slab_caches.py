"""Objects by slab cache: /proc/slabinfo (mm/slab_common.c), with the names of caches that the
kernel has merged (/sys/kernel/slab, mm/slub.c).

`active_objs` counts the free objects of slabs that a CPU keeps for itself as used: off by some tens
per cache and CPU. Only root may read the file.
"""

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from necroscope.model.names import clean

SLAB: Final = "slab:"
# A walk over fewer objects holds no core; a cache that was counted once is counted on.
LEAST_OBJECTS: Final = 1_000
MOST_CACHES: Final = 64
_MOST_ALIASES: Final = 4
_HEAD_LINES: Final = 2
_BYTES_PER_KB: Final = 1024
# Pages and buffers of general use: what they hold is not one kind of object.
_GENERAL: Final = (b"kmem_cache", b"dma-kmalloc", b"kmalloc_buckets")


def parse(data: bytes) -> dict[str, int]:
    """Objects in use by the name under which the kernel lists the cache."""
    lines = data.splitlines()
    if not lines or not lines[0].startswith(b"slabinfo - version: 2"):
        raise ValueError("it is not slabinfo version 2")
    found = {}
    for line in lines[_HEAD_LINES:]:
        name, active, _ = line.split(None, 2)
        if not name.startswith(_GENERAL):
            found[clean(name)] = int(active)
    return found


def parse_unreclaimable_bytes(meminfo: bytes) -> int:
    """Of all caches together but those that shrink on demand, whose dentries and inodes `memory`
    counts every second.
    """
    _, _, rest = meminfo.partition(b"SUnreclaim:")
    return int(rest.split(None, 1)[0]) * _BYTES_PER_KB


def merged_names(root: Path) -> dict[str, str]:
    """For each cache the names of all that share it, the listed one included: `a/b`. Kernels
    without merging (SLAB, slab_nomerge) have none.
    """
    directory = root / "sys/kernel/slab"
    shared: dict[str, list[str]] = {}
    try:
        with os.scandir(directory) as entries:
            for entry in entries:
                if entry.is_symlink():
                    target = os.path.basename(os.readlink(entry.path))
                    shared.setdefault(target, []).append(clean(entry.name))
    except OSError:
        return {}
    return {
        name: "/".join(sorted(names)[:_MOST_ALIASES])
        for names in shared.values()
        for name in names
        if len(names) > 1
    }


def kinds(
    objects: Mapping[str, int], merged: Mapping[str, str], reported: Collection[str]
) -> dict[str, int]:
    """Populations by kind: of very many caches the largest, and those that were reported before,
    which would else seem to stay as they were.
    """
    named = {SLAB + merged.get(name, name): count for name, count in objects.items()}
    largest = sorted(named, key=lambda kind: -named[kind])[:MOST_CACHES]
    before = [kind for kind in reported if kind.startswith(SLAB)]
    return {kind: named[kind] for kind in largest if named[kind] >= LEAST_OBJECTS} | {
        kind: named.get(kind, 0) for kind in before
    }
