"""The architectures that are booted: what each is called by Debian, by Python's wheels and by QEMU,
and which machine QEMU emulates.
"""

import platform
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Architecture:
    """`debian` is its name among packages, `machine` what uname says. `emulator` is QEMU's program,
    `package` Debian's package with it; `model` are QEMU's words for board and processor, `console`
    is the kernel's name of the serial line.
    """

    debian: str
    machine: str
    emulator: str
    package: str
    model: tuple[str, ...]
    console: str

    @property
    def is_own(self) -> bool:
        """Whether this machine runs its programs."""
        return platform.machine() == self.machine

    @property
    def wheel_platforms(self) -> tuple[str, ...]:
        return tuple(
            f"{libc}_{self.machine}"
            for libc in ("manylinux_2_28", "manylinux_2_17", "manylinux2014")
        )


AMD64: Final = Architecture(
    "amd64",
    "x86_64",
    "qemu-system-x86_64",
    "qemu-system-x86",
    # Wheels of today want the instructions of this processor; the emulation of later ones is
    # slower.
    ("-machine", "q35", "-cpu", "Westmere"),
    "ttyS0",
)
ARM64: Final = Architecture(
    "arm64",
    "aarch64",
    "qemu-system-aarch64",
    "qemu-system-arm",
    # Later processors sign their pointers, which takes the emulation more time than all else. With
    # the PMU an interrupt of perf takes 0.3 ms, and the kernel throttles the sampling for it.
    ("-machine", "virt,gic-version=3", "-cpu", "cortex-a72,pmu=off"),
    "ttyAMA0",
)
