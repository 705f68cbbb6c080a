"""Cgroups made, removed and released, decoded by the kernel's own format."""

import os
import struct
from pathlib import Path

import pytest

from necroscope.model.names import LINE_LIMIT
from necroscope.sources.perf.cgroup_ledger import CgroupLedger
from necroscope.sources.perf.tracefs import parse_format

DATA = Path(__file__).parents[3] / "data/perf"
EVENTS = "sys/kernel/tracing/events/cgroup"


@pytest.fixture
def ledger(tmp_path: Path) -> CgroupLedger:
    for name in ("cgroup_mkdir", "cgroup_rmdir", "cgroup_release"):
        directory = tmp_path / EVENTS / name
        directory.mkdir(parents=True)
        (directory / "format").write_bytes((DATA / f"{name}.format").read_bytes())
    return CgroupLedger(tmp_path)


def raw(path: bytes, cgroup_id: int = 4242, root: int = 5, level: int = 2) -> bytes:
    text = path + b"\0"
    return (
        struct.pack("<HBBiiiQI", 540, 0, 0, 1, root, level, cgroup_id, 28 | len(text) << 16) + text
    )


def tracepoint_id(name: str) -> int:
    return parse_format((DATA / f"{name}.format").read_text()).id


@pytest.mark.parametrize(
    ("name", "action"),
    [("cgroup_mkdir", "made"), ("cgroup_rmdir", "removed"), ("cgroup_release", "released")],
)
def test_each_tracepoint_is_an_action(ledger: CgroupLedger, name: str, action: str) -> None:
    assert ledger.row(99, tracepoint_id(name), raw(b"/pods/a")) == (
        99,
        action,
        5,
        4242,
        2,
        "/pods/a",
    )
    assert tracepoint_id(name) in ledger.tracepoint_ids


def test_padding_after_the_path_is_not_part_of_it(ledger: CgroupLedger) -> None:
    assert ledger.row(1, tracepoint_id("cgroup_mkdir"), raw(b"/a") + bytes(5))[-1] == "/a"


def test_a_hostile_path_is_made_harmless(ledger: CgroupLedger) -> None:
    path = ledger.row(1, tracepoint_id("cgroup_mkdir"), raw(b"/\x1b[31m\xff" + b"x" * 5000))[-1]
    assert isinstance(path, str)
    assert path.startswith("/\\x1b[31m\\xff")
    assert len(path) == LINE_LIMIT


def test_an_old_kernels_small_id_is_read_from_its_own_place(tmp_path: Path) -> None:
    for name in ("cgroup_mkdir", "cgroup_rmdir", "cgroup_release"):
        directory = tmp_path / EVENTS / name
        directory.mkdir(parents=True)
        old = (DATA / "cgroup_mkdir-4.14.format").read_text()
        (directory / "format").write_text(
            old.replace("ID: 402", f"ID: {len(os.listdir(tmp_path / EVENTS)) + 401}")
        )
    data = struct.pack("<HBBiiiiI", 402, 0, 0, 1, 5, 77, 3, 24 | 3 << 16) + b"/a\0"
    assert CgroupLedger(tmp_path).row(1, 402, data) == (1, "made", 5, 77, 3, "/a")
