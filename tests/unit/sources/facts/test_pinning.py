"""Facts about who may run where."""

from pathlib import Path

from tests.synthetic_root import write_files

from necroscope.sources.facts import pinning


def status(name: str, cores: str, *, is_kernel: bool = False) -> str:
    memory = "" if is_kernel else "VmSize:\t  1000 kB\n"
    return f"Name:\t{name}\nPid:\t1\n{memory}Cpus_allowed:\tff\nCpus_allowed_list:\t{cores}\n"


def facts(root: Path) -> dict[tuple[str, str], str]:
    return {(kind, name): value for kind, name, value in pinning.collect(root)}


def test_programs_that_are_confined_are_reported_with_their_cores(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "sys/devices/system/cpu/online": "0-95\n",
            "proc/10/status": status("train", "4-7"),
            "proc/11/status": status("train", "8-11"),
            "proc/12/status": status("free", "0-95"),
            "proc/13/status": status("beyond", "0-127"),
            "proc/14/status": status("kworker/3:0", "3", is_kernel=True),
            "proc/15/status": status("\x1b[31mevil", "1"),
            "proc/self": "",
        },
    )
    found = facts(tmp_path)
    assert found["pinning", "train"] == "4-7; 8-11"
    names = {name for _, name in found}
    assert not names & {"free", "beyond", "kworker/3:0"}
    assert len(names) == 2
    assert all(name.isprintable() for name in names)


def test_cgroups_with_cores_of_their_own_are_reported(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "sys/fs/cgroup/kubepods.slice/cpuset.cpus": "2-95\n",
            "sys/fs/cgroup/kubepods.slice/pod1/cpuset.cpus": "4-7\n",
            "sys/fs/cgroup/system.slice/cpuset.cpus": "\n",
            "sys/fs/cgroup/machine.slice/cpuset.cpus": "0-95\n",
            "sys/devices/system/cpu/online": "0-95\n",
        },
    )
    assert facts(tmp_path) == {
        ("cpuset", "/kubepods.slice"): "2-95",
        ("cpuset", "/kubepods.slice/pod1"): "4-7",
    }


def test_the_cores_of_a_network_device_s_interrupts_are_reported(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            **{f"sys/class/net/eth0/device/msi_irqs/{number}": "msix\n" for number in (30, 31, 32)},
            "proc/irq/30/smp_affinity_list": "0-3\n",
            "proc/irq/31/smp_affinity_list": "39\n",
            "proc/irq/32/smp_affinity_list": "0-3\n",
            "sys/class/net/lo/mtu": "1\n",
        },
    )
    assert facts(tmp_path) == {("interrupt", "eth0 affinity"): "3 on 0-3; 39"}
