"""What a child is shown of the machine before it runs: its own mounts, fewer capabilities, another
user. All ends with the child.

For `preexec_fn` of a child: nothing here may be called in the test's own process.
"""

import ctypes
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import necroscope
from necroscope.model import capabilities

CAP_SYS_ADMIN, CAP_PERFMON, CAP_BPF = 21, 38, 39
NOBODY = 65534
_PR_SET_KEEPCAPS, _PR_CAPBSET_DROP = 8, 24
_CLONE_NEWNS = 0x00020000
_MS_BIND, _MS_REC, _MS_PRIVATE = 4096, 16384, 1 << 18
_MNT_DETACH = 2
_libc = ctypes.CDLL(None, use_errno=True)


def own_mounts() -> None:
    """From here on mounts are seen by this process and its children only."""
    _check(_libc.unshare(_CLONE_NEWNS), "unshare")
    _check(_libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None), "mount --make-rprivate /")


def mount(kind: str, target: Path) -> None:
    _check(
        _libc.mount(b"none", os.fsencode(target), kind.encode(), 0, None),
        f"mount {kind} on {target}",
    )


def bind(source: Path, target: Path) -> None:
    _check(
        _libc.mount(os.fsencode(source), os.fsencode(target), None, _MS_BIND | _MS_REC, None),
        f"bind {source} to {target}",
    )


def silence_kernel_log(terminal: str) -> None:
    """/dev/kmsg becomes a terminal on which nothing is written, a device that can be waited for as
    well: what this machine's kernel has said since it started is not what a test is about.
    """
    own_mounts()
    bind(Path(terminal), Path("/dev/kmsg"))


def unmount(target: Path) -> None:
    """As often as something is mounted there."""
    while _libc.umount2(os.fsencode(target), _MNT_DETACH) == 0:
        pass


def drop_capabilities(*dropped: int) -> None:
    """Root gets at exec what the bounding set holds."""
    for capability in dropped:
        _check(_libc.prctl(_PR_CAPBSET_DROP, capability, 0, 0, 0), "prctl PR_CAPBSET_DROP")


def become_nobody(stage: Path, keeps: Sequence[int] = ()) -> None:
    """`stage` is an empty directory of the test's. The interpreter and this package are made
    reachable where only root may go. `keeps` are capabilities, as systemd's AmbientCapabilities.
    """
    own_mounts()
    _open_up([Path(sys.base_prefix), Path(sys.prefix), Path(necroscope.__file__).parents[1]], stage)
    os.setgroups([])
    os.setgid(NOBODY)
    _check(_libc.prctl(_PR_SET_KEEPCAPS, 1, 0, 0, 0), "prctl PR_SET_KEEPCAPS")
    os.setuid(NOBODY)
    kept = sum(1 << capability for capability in keeps)
    capabilities._set([kept, kept, kept])
    capabilities.hand_on()


def _open_up(needed: list[Path], stage: Path) -> None:
    """A directory closed to others is replaced by an open one that holds only what is needed of
    it.
    """
    for closed in {closed for path in needed if (closed := _closed_ancestor(path)) is not None}:
        inside = [path.resolve() for path in needed if path.resolve().is_relative_to(closed)]
        kept = [stage / str(number) for number in range(len(inside))]
        for path, place in zip(inside, kept, strict=True):
            place.mkdir()
            bind(path, place)
        mount("tmpfs", closed)
        closed.chmod(0o755)
        for path, place in zip(inside, kept, strict=True):
            path.mkdir(parents=True, exist_ok=True)
            bind(place, path)


def _closed_ancestor(path: Path) -> Path | None:
    ancestors = [*reversed(path.resolve().parents), path.resolve()]
    return next((ancestor for ancestor in ancestors if not ancestor.stat().st_mode & 0o001), None)


def _check(result: int, what: str) -> None:
    if result != 0:
        raise OSError(ctypes.get_errno(), f"{what}: {os.strerror(ctypes.get_errno())}")
