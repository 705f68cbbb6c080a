"""Constants of perf.data that are perf's and not the kernel's (tools/perf/util/header.h,
tools/lib/perf/include/perf/event.h).
"""

from typing import Final

MAGIC: Final = b"PERFILE2"
MAGIC_BIG_ENDIAN: Final = b"2ELIFREP"
MAGIC_OLD: Final = b"PERFFILE"

# Records of the kernel that `perf_abi.records` does not name.
LOST_SAMPLES: Final = 13
CGROUP: Final = 19

HEADER_ATTR: Final = 64
HEADER_TRACING_DATA: Final = 66
HEADER_BUILD_ID: Final = 67
AUXTRACE: Final = 71
EVENT_UPDATE: Final = 78
HEADER_FEATURE: Final = 80
COMPRESSED: Final = 81
COMPRESSED2: Final = 83

# Records that are followed by more bytes than their size says, or that hold other records.
SPECIAL: Final = (HEADER_TRACING_DATA, AUXTRACE, COMPRESSED, COMPRESSED2)

# Records whose size is not rounded up to words.
UNALIGNED: Final = (HEADER_FEATURE, COMPRESSED)

MISC_BUILD_ID_SIZE: Final = 1 << 15

UPDATE_NAME: Final = 2

FEATURE_BUILD_ID: Final = 2
FEATURE_HOSTNAME: Final = 3
FEATURE_OSRELEASE: Final = 4
FEATURE_ARCH: Final = 6
FEATURE_NRCPUS: Final = 7
FEATURE_CMDLINE: Final = 11
FEATURE_EVENT_DESC: Final = 12
FEATURE_SAMPLE_TIME: Final = 21
FEATURE_CLOCK_DATA: Final = 29

# Names of events where the file gives none: perf_event.h, enum perf_hw_id and perf_sw_ids.
EVENT_NAMES: Final[dict[int, tuple[str, ...]]] = {
    0: (
        "cycles",
        "instructions",
        "cache-references",
        "cache-misses",
        "branches",
        "branch-misses",
        "bus-cycles",
        "stalled-cycles-frontend",
        "stalled-cycles-backend",
        "ref-cycles",
    ),
    1: (
        "cpu-clock",
        "task-clock",
        "page-faults",
        "context-switches",
        "cpu-migrations",
        "minor-faults",
        "major-faults",
        "alignment-faults",
        "emulation-faults",
        "dummy",
        "bpf-output",
        "cgroup-switches",
    ),
}
