"""Facts about mounts (/proc/PID/mountinfo, fs/proc_namespace.c): how many of each type, the options
of those that hold data.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from necroscope.sources.facts.fact import Fact, fact, read_bytes

MOUNT_LIMIT: Final = 100
_MOUNTINFO_BYTES: Final = 16 << 20
_REMOTE: Final = re.compile(r"nfs4?|ceph|lustre|cifs|smb3|glusterfs|9p|virtiofs|fuse(\..+)?")
# One mount or more for each container: their number counts, not each of them.
_OF_CONTAINERS: Final = re.compile(
    r"/(var/lib/(kubelet/pods|docker|containers|containerd)|run/(containerd|containers|netns|docker))/.*"
)
_LEAST_FIELDS: Final = 6


def collect(root: Path) -> Iterator[Fact]:
    data = read_bytes(root / "proc/1/mountinfo", _MOUNTINFO_BYTES) or read_bytes(
        root / "proc/self/mountinfo", _MOUNTINFO_BYTES
    )
    yield from parse(data or b"")


def parse(data: bytes) -> Iterator[Fact]:
    """Counts are given by power of two: the exact number of container mounts changes all day."""
    types: Counter[str] = Counter()
    mounts: dict[str, str] = {}
    for line in data.decode("utf-8", "backslashreplace").splitlines():
        place, dash, kind = line.partition(" - ")
        fields, described = place.split(" "), kind.split(" ")
        if not dash or len(fields) < _LEAST_FIELDS or len(described) < 3:
            continue
        file_system, source, super_options = described[:3]
        types[file_system] += 1
        if (
            source.startswith("/dev/") or _REMOTE.fullmatch(file_system) or fields[4] == "/"
        ) and not _OF_CONTAINERS.fullmatch(fields[4]):
            mounts[fields[4]] = f"{file_system} {fields[5]} {super_options}"
    for file_system, count in sorted(types.items()):
        yield fact(
            "mount_count",
            file_system,
            f"{1 << count.bit_length() - 1} to {(1 << count.bit_length()) - 1}"
            if count > 1
            else "1",
        )
    for point in sorted(mounts)[:MOUNT_LIMIT]:
        yield fact("mount", point, mounts[point])
