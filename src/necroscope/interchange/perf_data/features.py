"""Feature sections of perf.data as facts (tools/perf/util/header.c): host, kernel, cores, events,
build ids, clocks.
"""

import struct
from collections.abc import Iterable
from typing import Final

from necroscope.interchange.capture import CaptureFacts
from necroscope.interchange.perf_data.format import (
    FEATURE_ARCH,
    FEATURE_BUILD_ID,
    FEATURE_CLOCK_DATA,
    FEATURE_CMDLINE,
    FEATURE_EVENT_DESC,
    FEATURE_HOSTNAME,
    FEATURE_NRCPUS,
    FEATURE_OSRELEASE,
    FEATURE_SAMPLE_TIME,
    MISC_BUILD_ID_SIZE,
)
from necroscope.interchange.perf_data.header import FileEvent, FileHeader, build_id_records
from necroscope.model.names import LINE_LIMIT, clean
from necroscope.perf_abi.event_attr import SAMPLE_TIME, SW_DUMMY, TYPE_SOFTWARE
from necroscope.perf_abi.records import HEADER

_MOST_STRINGS: Final = 65536
_LARGEST_TIME_NS: Final = 1 << 62
# CLOCK_MONOTONIC and CLOCK_MONOTONIC_RAW: apart from the clock of the kernel's log by no more than
# what NTP corrects.
_SINCE_BOOT: Final = (1, 4)


def facts_of(header: FileHeader) -> CaptureFacts:
    """What the head says; `first_ns` is on the capture's time line."""
    name_events(header)
    wall_offset_ns, why_not = wall_clock_offset_ns(header)
    layouts = [event.layout for event in header.events if not _is_dummy(event)] or [
        header.events[0].layout
    ]
    facts = CaptureFacts(
        "perf.data",
        host=_text(header, FEATURE_HOSTNAME),
        kernel_release=_text(header, FEATURE_OSRELEASE),
        arch=_text(header, FEATURE_ARCH),
        cpus=_cpus(header),
        command_line=_command_line(header),
        event_names=[header.event_name(event) for event in range(len(header.events))],
        time_is_wall_clock=wall_offset_ns is not None,
        why_not_wall_clock=why_not,
        has_time=all(layout.has(SAMPLE_TIME) for layout in layouts),
    )
    if _clock_of(header) in _SINCE_BOOT:
        facts.since_boot_offset_ns = wall_offset_ns
    section = header.features.get(FEATURE_SAMPLE_TIME, b"")
    if len(section) >= 16 and facts.has_time:
        first, last = struct.unpack_from("<QQ", section)
        if first <= last < _LARGEST_TIME_NS:
            # The last one is not to be trusted: it is where perf stopped to look for build ids
            # (builtin-record.c).
            facts.first_ns = first + (wall_offset_ns or 0)
    return facts


def _is_dummy(event: FileEvent) -> bool:
    """perf's own event for mappings and names: it takes no samples."""
    return (event.type, event.config) == (TYPE_SOFTWARE, SW_DUMMY)


def wall_clock_offset_ns(header: FileHeader) -> tuple[int | None, str]:
    """What to add to a sample's time to have UTC, or why that is not known."""
    if not any(event.layout.has(SAMPLE_TIME) for event in header.events):
        return None, "the samples have no time"
    if not any(event.uses_clockid for event in header.events):
        return (
            None,
            (
                "`perf record` ran without -k: its times are of the kernel's own clock, which no"
                " wall clock is known for"
            ),
        )
    section = header.features.get(FEATURE_CLOCK_DATA, b"")
    if len(section) < 24:
        return None, "the file has no CLOCK_DATA, which `perf record -k` writes since 5.9"
    _, _, wall_ns, clock_ns = struct.unpack_from("<IIQQ", section)
    if wall_ns >= _LARGEST_TIME_NS or clock_ns >= _LARGEST_TIME_NS:
        return None, "its CLOCK_DATA is out of range"
    return wall_ns - clock_ns, ""


def _clock_of(header: FileHeader) -> int:
    """The clockid of `perf record -k`, -1 if none."""
    section = header.features.get(FEATURE_CLOCK_DATA, b"")
    return int(struct.unpack_from("<I", section, 4)[0]) if len(section) >= 24 else -1


def build_ids(header: FileHeader) -> dict[str, str]:
    """Build id by path, of the modules that samples touched."""
    found: dict[str, str] = {}
    for record in [
        *build_id_records(header.features.get(FEATURE_BUILD_ID, b"")),
        *header.build_id_records,
    ]:
        if len(record) < 40:
            continue
        misc = HEADER.unpack_from(record)[1]
        size = record[32] if misc & MISC_BUILD_ID_SIZE else 20
        path = record[36:].partition(b"\0")[0].decode("utf-8", "surrogateescape")
        if 0 < size <= 20:
            found[path] = record[12 : 12 + size].hex()
    return found


def name_events(header: FileHeader) -> None:
    """Names of EVENT_DESC, given to the events by the ids both have, else by their order."""
    section = header.features.get(FEATURE_EVENT_DESC, b"")
    if len(section) < 8:
        return
    count, attr_bytes = struct.unpack_from("<II", section)
    at = 8
    for index in range(min(count, len(header.events))):
        at += attr_bytes
        if at + 8 > len(section):
            return
        ids, length = struct.unpack_from("<II", section, at)
        name = section[at + 8 : at + 8 + length].partition(b"\0")[0]
        at += 8 + length + 8 * ids
        first_id = (
            struct.unpack_from("<Q", section, at - 8 * ids)[0]
            if ids and at <= len(section)
            else None
        )
        header.names[header.event_of_id.get(first_id, index) if first_id is not None else index] = (
            clean(name)
        )


def _text(header: FileHeader, feature: int) -> str | None:
    return next(iter(_strings(header.features.get(feature, b""), 1)), None)


def _strings(section: bytes, count: int) -> Iterable[str]:
    at = 0
    for _ in range(min(count, _MOST_STRINGS)):
        if at + 4 > len(section):
            return
        (length,) = struct.unpack_from("<I", section, at)
        yield clean(section[at + 4 : at + 4 + length].partition(b"\0")[0])
        at += 4 + length


def _command_line(header: FileHeader) -> str | None:
    section = header.features.get(FEATURE_CMDLINE, b"")
    if len(section) < 4:
        return None
    return clean(" ".join(_strings(section[4:], struct.unpack_from("<I", section)[0])), LINE_LIMIT)


def _cpus(header: FileHeader) -> int | None:
    """Cores the machine can have: cores are numbered below that (the file says first how many can
    be, then how many are on).
    """
    section = header.features.get(FEATURE_NRCPUS, b"")
    return max(struct.unpack_from("<II", section)) if len(section) >= 8 else None
