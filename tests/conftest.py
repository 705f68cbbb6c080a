"""What every test may ask for: skips with their reason for what cannot run here, and a check that
nothing is left behind.
"""

import contextlib
import ctypes
import gc
import os
import platform
import subprocess
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from dataclasses import dataclass, fields
from pathlib import Path

import pytest

BPF_SYSCALL = {"x86_64": 321, "aarch64": 280}.get(platform.machine())
BPF_PROG_GET_NEXT_ID = 11
LEAK_MARK = "NECROSCOPE_LEAK_MARK"
# Integration tests that record nothing: whatever else runs on the machine does not matter to them.
BESIDE_OTHERS = {
    *(
        "test_flame",
        "test_flame_of_captures",
        "test_import",
        "test_guest_recordings",
        "test_lab_recordings",
        "test_demo_fleet",
    ),
    *(
        "test_fleet_collector",
        "test_fleet_questions",
        "test_fleet_s3",
        "test_fleet_sweep_s3",
        "test_fleet_page",
    ),
    *("test_view_page", "test_demo", "test_html_files", "test_notify", "test_prometheus"),
    *("test_accessibility", "test_flame_waits", "test_import_story", "test_mcp", "test_view_waits"),
}
# Those that drive a recorder and mostly wait for it: one at a time, while others use the cores when
# it does not.
WAITING = {
    *("test_base_package", "test_check", "test_containers_live", "test_disk", "test_fleet_push"),
    *("test_crash", "test_hung_daemons", "test_late_signal", "test_privilege", "test_record"),
    *("test_stakeout", "test_units_live", "test_verdicts", "test_view_live"),
}
SETTLE_S = 3.0
ROOT = Path(__file__).parents[1]


def pytest_configure(config: pytest.Config) -> None:
    """No test runs with a native library that is older than its source, as after a rebase."""
    made = ROOT / "src/necroscope/profile/libprofile.so"
    if hasattr(config, "workerinput") or not made.exists():
        return
    sources = (ROOT / "src/necroscope/profile/core").iterdir()
    if made.stat().st_mtime < max(path.stat().st_mtime for path in sources):
        subprocess.run([sys.executable, "hatch_build.py", "library"], cwd=ROOT, check=True)


def pytest_make_parametrize_id(val: object) -> str | None:
    """Bytes are described by their place: what gzip makes of them holds the time, and every worker must
    give a test the same name.
    """
    return "bytes" if isinstance(val, bytes) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=lambda item: item.get_closest_marker("one_thread") is None)
    reasons = {}
    if os.geteuid() != 0:
        reasons["root"] = "needs root"
    if sys.platform != "linux":
        reasons["kernel"] = reasons["root"] = "needs a Linux kernel"
    for item in items:
        if when := _when(item):
            item.add_marker(when)
        for marker, reason in reasons.items():
            if item.get_closest_marker(marker):
                item.add_marker(pytest.mark.skip(reason=reason))


def _when(item: pytest.Item) -> pytest.MarkDecorator | None:
    """When scripts/test runs it, if not beside all others."""
    if item.get_closest_marker("slow"):
        return None
    is_live = bool({"kernel", "one_thread", "alone"} & {mark.name for mark in item.iter_markers()})
    parts = item.path.relative_to(item.config.rootpath).parts
    if "integration" not in parts or item.path.stem in BESIDE_OTHERS:
        return pytest.mark.alone if is_live else None
    is_alone = item.get_closest_marker("alone") or item.path.stem not in WAITING
    return pytest.mark.alone if is_alone else pytest.mark.waits


def pytest_collection_finish() -> None:
    """The tests themselves stay to the end: no garbage collection need look at them again."""
    gc.collect()
    gc.freeze()


def pytest_unconfigure() -> None:
    gc.unfreeze()


@dataclass(frozen=True)
class Footprint:
    """What a run can leave behind; a set is None where this machine does not let us look."""

    processes: frozenset[str]
    mounts: frozenset[str]
    bpf_programs: frozenset[str] | None
    cgroups: frozenset[str]
    descriptors: frozenset[str]

    @classmethod
    def take(cls, mark: str) -> "Footprint":
        gc.collect()
        return cls(
            frozenset(_processes(mark)),
            frozenset(Path("/proc/self/mountinfo").read_text().splitlines()),
            _bpf_programs(mark),
            frozenset(_empty_cgroups(Path("/sys/fs/cgroup"))),
            frozenset(_descriptors()),
        )

    def left_since(self, before: "Footprint") -> list[str]:
        return [
            f"{kind.name}: {left}"
            for kind in fields(self)
            for left in sorted(
                (getattr(self, kind.name) or set()) - (getattr(before, kind.name) or set())
            )
        ]


def _processes(mark: str) -> Iterator[str]:
    """Children of this process, and whoever inherited the mark in its environment, however often it
    was re-parented.
    """
    for directory in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            if directory.name != str(os.getpid()) and _is_ours(directory, mark):
                yield f"{directory.name} {(directory / 'comm').read_text(errors='replace').strip()}"


def _is_ours(process: Path, mark: str) -> bool:
    parent = (process / "stat").read_text(errors="replace").rpartition(")")[2].split()[1]
    return int(parent) == os.getpid() or mark.encode() in (process / "environ").read_bytes()


def _bpf_programs(mark: str) -> frozenset[str] | None:
    """Those in the kernel that no stranger holds: another recorder may run on this machine."""
    if BPF_SYSCALL is None:
        return None
    libc = ctypes.CDLL(None, use_errno=True)
    attr = (ctypes.c_uint32 * 3)()
    programs = set()
    while libc.syscall(BPF_SYSCALL, BPF_PROG_GET_NEXT_ID, attr, ctypes.sizeof(attr)) == 0:
        programs.add(str(attr[1]))
        attr[0] = attr[1]
    return frozenset(programs - set(_programs_of_strangers(mark)))


def _programs_of_strangers(mark: str) -> Iterator[str]:
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            if process.name == str(os.getpid()) or _is_ours(process, mark):
                continue
            for descriptor in (process / "fd").iterdir():
                if os.readlink(descriptor) == "anon_inode:bpf-prog":
                    facts = (process / "fdinfo" / descriptor.name).read_text()
                    yield facts.partition("prog_id:")[2].split()[0]


def _empty_cgroups(root: Path) -> Iterator[str]:
    """Leaves without a process. One with a process belongs to somebody else on this machine, or
    that process is the leak.
    """
    for directory, children, files in os.walk(root):
        if not children and "cgroup.procs" in files:
            try:
                if not Path(directory, "cgroup.procs").read_bytes():
                    yield directory
            except OSError:
                continue


def _descriptors() -> Iterator[str]:
    for number in os.listdir("/proc/self/fd"):
        try:
            yield f"{number} {os.readlink(f'/proc/self/fd/{number}')}"
        except FileNotFoundError:
            continue  # the listing's own descriptor


@pytest.fixture
def leaks(monkeypatch: pytest.MonkeyPatch) -> Callable[[], list[str]]:
    """A function that says what this test has left behind so far; it waits a moment for what is on
    its way out.
    """
    mark = uuid.uuid4().hex
    monkeypatch.setenv(LEAK_MARK, mark)
    before = Footprint.take(mark)

    def left() -> list[str]:
        deadline = time.monotonic() + SETTLE_S
        while (found := Footprint.take(mark).left_since(before)) and time.monotonic() < deadline:
            time.sleep(0.05)
        return found

    return left


@pytest.fixture
def leak_check(leaks: Callable[[], list[str]]) -> Iterator[None]:
    """Fails the test that leaves a process, mount, BPF program, cgroup or descriptor behind."""
    yield
    assert leaks() == []
