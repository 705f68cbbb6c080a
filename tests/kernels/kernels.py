"""The kernels that are booted: what Debian's suites offer by name.

The table holds no release number to compare with: what a kernel can do shows in what it does.
`softirqs_wait` is the truth that the checks of a driver's reset are held against: softirqs do not
run at interrupt exit while ksoftirqd is runnable (commits 4cd13c21b207 in v4.9, d15121be7485 in
v6.5), and a task in the kernel is not preempted there. `has_v1_memory`: the memory controller of
cgroup v1 is built in (CONFIG_MEMCG_V1, which newer ones leave out). `keeps_dead_cgroups`: page
cache keeps a removed memory cgroup alive (in 7.2 it moves to the parent). `has_bpf_loop`: with it
softirqs are kept off (v5.17).
"""

from dataclasses import dataclass
from typing import Final

from tests.kernels.architecture import AMD64, ARM64, Architecture


@dataclass(frozen=True, slots=True)
class Kernel:
    """`package` is Debian's meta-package in `suite`; `softirqs_wait` is None where the tests'
    network driver is not in it.
    """

    name: str
    suite: str
    package: str
    softirqs_wait: bool | None
    has_v1_memory: bool = True
    keeps_dead_cgroups: bool = True
    has_bpf_loop: bool = True
    architecture: Architecture = AMD64


KERNELS: Final = (
    Kernel("5.10", "bullseye", "linux-image-amd64", softirqs_wait=True, has_bpf_loop=False),
    Kernel("6.1", "bookworm", "linux-image-amd64", softirqs_wait=True),
    Kernel("6.1-cloud", "bookworm", "linux-image-cloud-amd64", softirqs_wait=None),
    Kernel("6.1-rt", "bookworm", "linux-image-rt-amd64", softirqs_wait=False),
    Kernel("6.12", "trixie", "linux-image-amd64", softirqs_wait=False, has_v1_memory=False),
    Kernel(
        "newest",
        "sid",
        "linux-image-amd64",
        softirqs_wait=False,
        has_v1_memory=False,
        keeps_dead_cgroups=False,
    ),
    Kernel("6.1-arm64", "bookworm", "linux-image-arm64", softirqs_wait=True, architecture=ARM64),
)
SMOKE: Final = "6.1"
STORY: Final = KERNELS[0]


def kernel_named(name: str) -> Kernel:
    return next(kernel for kernel in KERNELS if kernel.name == name)
