"""Records of a perf ring or file: types and the layouts of those that our events write
(perf_event.h, enum perf_event_type).
"""

import struct
from typing import Final

MMAP: Final = 1
LOST: Final = 2
COMM: Final = 3
EXIT: Final = 4
THROTTLE: Final = 5
UNTHROTTLE: Final = 6
FORK: Final = 7
SAMPLE: Final = 9
MMAP2: Final = 10
KSYMBOL: Final = 17

MISC_KERNEL: Final = 1
MISC_COMM_EXEC: Final = 1 << 13

HEADER: Final = struct.Struct("<IHH")  # type, misc, size
LOST_BODY: Final = struct.Struct("<QQ")  # id, lost
KSYMBOL_BODY: Final = struct.Struct("<QIHH")  # address, length, type, flags, then name
KSYMBOL_GONE: Final = 1  # of the flags: unregistered
