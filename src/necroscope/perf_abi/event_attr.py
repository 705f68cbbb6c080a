"""struct perf_event_attr and the constants around it (include/uapi/linux/perf_event.h)."""

import platform
import struct
from typing import Final, NamedTuple

TYPE_HARDWARE: Final = 0
TYPE_SOFTWARE: Final = 1
TYPE_TRACEPOINT: Final = 2
HW_CPU_CYCLES: Final = 0
SW_CPU_CLOCK: Final = 0
SW_DUMMY: Final = 9

SAMPLE_IP: Final = 1 << 0
SAMPLE_TID: Final = 1 << 1
SAMPLE_TIME: Final = 1 << 2
SAMPLE_CALLCHAIN: Final = 1 << 5
SAMPLE_ID: Final = 1 << 6
SAMPLE_CPU: Final = 1 << 7
SAMPLE_RAW: Final = 1 << 10
SAMPLE_REGS_USER: Final = 1 << 12
SAMPLE_IDENTIFIER: Final = 1 << 16

# Bits of the flag word after read_format, in the order of the structure.
FLAG_DISABLED: Final = 1 << 0
FLAG_EXCLUDE_KERNEL: Final = 1 << 5
FLAG_MMAP: Final = 1 << 8
FLAG_COMM: Final = 1 << 9
FLAG_FREQ: Final = 1 << 10
FLAG_TASK: Final = 1 << 13
FLAG_WATERMARK: Final = 1 << 14
FLAG_SAMPLE_ID_ALL: Final = 1 << 18
FLAG_MMAP2: Final = 1 << 23
FLAG_COMM_EXEC: Final = 1 << 24
FLAG_USE_CLOCKID: Final = 1 << 25
FLAG_KSYMBOL: Final = 1 << 29  # since 5.1

CLOCK_MONOTONIC: Final = 1
OPEN_CLOEXEC: Final = 8

IOC_ENABLE: Final = 0x2400
IOC_SET_OUTPUT: Final = 0x2405
IOC_PERIOD: Final = 0x40082404
IOC_SET_BPF: Final = 0x40042408
IOC_ID: Final = 0x80082407

CONTEXT_KERNEL: Final = (1 << 64) - 128
CONTEXT_USER: Final = (1 << 64) - 512

# The register that holds a system call's first argument while the kernel runs it
# (arch/*/include/uapi/asm/perf_regs.h): x86's DI; aarch64's X0, which the kernel overwrites with
# the result only on return (never run here).
FIRST_ARGUMENT_REGISTER: Final = {"x86_64": 1 << 5, "aarch64": 1 << 0}.get(platform.machine(), 0)

# PERF_ATTR_SIZE_VER5 (4.1): every kernel we support knows it; a kernel that knows more fills the
# rest with zero.
_SIZE: Final = 112
_STRUCT: Final = struct.Struct("<IIQQQQQIIQQQQIiQIHH")


class EventAttr(NamedTuple):
    """What to count and what to write for each sample; `frequency` samples per second, or each
    event when it is None.
    """

    type: int
    config: int
    sample_type: int
    flags: int
    frequency: int | None = None
    wakeup_watermark_bytes: int = 0
    user_registers: int = 0
    max_stack: int = 0

    def pack(self) -> bytes:
        flags = self.flags | (FLAG_FREQ if self.frequency is not None else 0)
        period = self.frequency if self.frequency is not None else 1
        packed = _STRUCT.pack(
            *(
                self.type,
                _SIZE,
                self.config,
                period,
                self.sample_type,
                0,
                flags,
                self.wakeup_watermark_bytes,
                0,
                0,
                0,
                0,
            ),
            *(
                self.user_registers,
                0,
                CLOCK_MONOTONIC if flags & FLAG_USE_CLOCKID else 0,
                0,
                0,
                self.max_stack,
                0,
            ),
        )
        return packed.ljust(_SIZE, b"\0")
