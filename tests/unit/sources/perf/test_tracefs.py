"""Tracepoint formats of real kernels, and tracefs where it is mounted, hidden or absent."""

import os
from pathlib import Path

import pytest

from necroscope.errors import SourceUnavailable
from necroscope.sources.perf import tracefs
from necroscope.sources.perf.tracefs import Field, parse_format, read_tracepoints

DATA = Path(__file__).parents[3] / "data/perf"


def fields_of(name: str) -> dict[str, Field]:
    return parse_format((DATA / f"{name}.format").read_text()).fields


@pytest.mark.parametrize("name", ["softirq_raise", "softirq_entry"])
def test_a_softirqs_vector_lies_after_the_common_fields(name: str) -> None:
    assert fields_of(name)["vec"] == Field(8, 4)
    assert fields_of(name)["common_type"] == Field(0, 2)
    assert fields_of(name)["common_pid"] == Field(4, 4)


@pytest.mark.parametrize("name", ["cgroup_mkdir", "cgroup_rmdir", "cgroup_release"])
def test_a_cgroups_id_has_64_bits_on_a_new_kernel(name: str) -> None:
    fields = fields_of(name)
    assert (fields["root"], fields["level"], fields["id"], fields["path"]) == (
        Field(8, 4),
        Field(12, 4),
        Field(16, 8),
        Field(24, 4),
    )


def test_a_cgroups_id_has_32_bits_on_an_old_kernel() -> None:
    fields = fields_of("cgroup_mkdir-4.14")
    assert (fields["id"], fields["level"], fields["path"]) == (
        Field(12, 4),
        Field(16, 4),
        Field(20, 4),
    )


def test_the_id_is_the_tracepoints_own() -> None:
    text = (DATA / "softirq_raise.format").read_text()
    assert f"ID: {parse_format(text).id}\n" in text


def test_arrays_are_fields_by_their_name() -> None:
    text = "name: x\nID: 5\nformat:\n\tfield:char comm[16];\toffset:8;\tsize:16;\tsigned:0;\n"
    assert parse_format(text).fields == {"comm": Field(8, 16)}


@pytest.mark.parametrize("text", ["", "name: x\nformat:\n", "ID: many\n"])
def test_a_format_without_an_id_is_unavailable(text: str) -> None:
    with pytest.raises(SourceUnavailable):
        parse_format(text)


@pytest.fixture
def mounted(tmp_path: Path) -> Path:
    directory = tmp_path / "sys/kernel/tracing/events/irq/softirq_raise"
    directory.mkdir(parents=True)
    (directory / "format").write_bytes((DATA / "softirq_raise.format").read_bytes())
    return tmp_path


def test_a_mounted_tracefs_below_the_root_is_used(mounted: Path) -> None:
    found = read_tracepoints(("irq:softirq_raise",), mounted)
    assert found["irq:softirq_raise"].fields["vec"].offset == 8


def test_debugfs_has_it_on_old_machines(mounted: Path) -> None:
    (mounted / "sys/kernel/debug").mkdir()
    (mounted / "sys/kernel/tracing").rename(mounted / "sys/kernel/debug/tracing")
    assert read_tracepoints(("irq:softirq_raise",), mounted)


def test_a_tracepoint_that_is_missing_is_unavailable_by_name(mounted: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(SourceUnavailable, match="cgroup:cgroup_mkdir"):
        read_tracepoints(("cgroup:cgroup_mkdir",), mounted)
    assert len(os.listdir("/proc/self/fd")) == before


def refuse(*_: object) -> int:
    raise PermissionError(1, "Operation not permitted")


def test_without_tracefs_and_privilege_the_way_out_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracefs, "syscall", refuse)
    with pytest.raises(SourceUnavailable) as caught:
        read_tracepoints(("irq:softirq_raise",), tmp_path)
    assert "CAP_SYS_ADMIN" in caught.value.hint


def test_a_tracefs_for_root_only_is_unavailable_and_no_crash(
    mounted: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tracefs, "syscall", refuse)
    monkeypatch.setattr(tracefs.os, "stat", refuse)
    with pytest.raises(SourceUnavailable):
        read_tracepoints(("irq:softirq_raise",), mounted)


@pytest.mark.root
@pytest.mark.kernel
def test_this_kernel_has_the_tracepoints_and_no_mount_is_left(
    leak_check: None, tmp_path: Path
) -> None:
    names = (
        "irq:softirq_raise",
        "irq:softirq_entry",
        "cgroup:cgroup_mkdir",
        "cgroup:cgroup_rmdir",
        "cgroup:cgroup_release",
    )
    found = read_tracepoints(names, tmp_path)
    assert len({tracepoint.id for tracepoint in found.values()}) == 5
    assert all("vec" in found[name].fields for name in names[:2])
    assert all({"root", "id", "level", "path"} <= found[name].fields.keys() for name in names[2:])
