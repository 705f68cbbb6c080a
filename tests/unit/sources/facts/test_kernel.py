"""Facts about the kernel."""

from pathlib import Path

import pytest
from tests.synthetic_root import make_root, write_files

from necroscope.sources.facts import kernel
from necroscope.sources.facts.kernel import preemption_model


def test_what_the_kernel_is_and_how_it_was_set(tmp_path: Path) -> None:
    make_root(tmp_path, 2)
    files = {
        "proc/sys/kernel/osrelease": "5.15.0-1084-aws\n",
        "proc/version": "Linux version 5.15.0 (x) #1 SMP PREEMPT Tue\n",
        "proc/cmdline": "root=/dev/x  quiet\n",
        "proc/sys/net/core/netdev_budget": "300\n",
        "proc/sys/net/ipv4/tcp_rmem": "4096\t131072\t6291456\n",
        "proc/modules": "ena 147456 0 - Live 0xffff (OE)\nnf_nat 1 2 x, Live 0x0\n",
        "sys/module/ena/version": "2.11.0g\n",
        "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
        "sys/devices/system/cpu/vulnerabilities/retbleed": "Mitigation: none\n",
    }
    write_files(tmp_path, files)
    found = {(kind, name): value for kind, name, value in kernel.collect(tmp_path)}
    assert found["kernel", "release"] == "5.15.0-1084-aws"
    assert found["kernel", "command_line"] == "root=/dev/x quiet"
    assert found["kernel", "preemption"] == "full"
    assert found["sysctl", "net.core.netdev_budget"] == "300"
    assert found["sysctl", "net.ipv4.tcp_rmem"] == "4096 131072 6291456"
    assert (found["module", "ena"], found["module", "nf_nat"]) == ("2.11.0g (OE)", "loaded")
    assert found["thp", "enabled"] == "madvise"
    assert found["vulnerability", "retbleed"] == "Mitigation: none"
    assert found["cgroup", "mode"] == "v1"


@pytest.mark.parametrize(
    ("chosen", "command_line", "version", "model"),
    [
        ("none (voluntary) full", "preempt=full", "", "voluntary"),
        (None, "quiet preempt=none", "x PREEMPT_DYNAMIC y", "none"),
        (None, "quiet", "#1 SMP PREEMPT_DYNAMIC Tue", "PREEMPT_DYNAMIC"),
        (None, None, "#1 SMP PREEMPT_RT Tue", "rt"),
        (None, "", "#1 SMP Tue", "none or voluntary"),
        (None, None, None, None),
    ],
)
def test_the_preemption_model_is_the_one_in_force(
    chosen: str | None, command_line: str | None, version: str | None, model: str | None
) -> None:
    assert preemption_model(chosen, command_line, version) == model


def test_an_empty_root_has_no_facts(tmp_path: Path) -> None:
    assert list(kernel.collect(tmp_path)) == []


@pytest.mark.parametrize(
    ("parameter", "kept"),
    [
        ("root=UUID=0a1b2c3d-0000-1111-2222-333344445555", True),
        ("isolcpus=2-95", True),
        ("mitigations=off", True),
        ("console=ttyS0,115200n8", True),
        ("quiet", True),
        ("rd.luks.key=/root.key", False),
        ("rd.iscsi.password=hunter2", False),
        ("netroot=iscsi:user:pw@10.0.0.1::3260::iqn.2020", False),
        ("inst.ks=https://user:pw@host/ks.cfg", False),
        ("cloud=eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9", False),
    ],
)
def test_secrets_of_the_command_line_are_not_kept(parameter: str, kept: bool) -> None:
    said = kernel.redact_command_line(f"ro {parameter} splash")
    name = parameter.partition("=")[0]
    assert said == f"ro {parameter if kept else f'{name}=(redacted)'} splash"
