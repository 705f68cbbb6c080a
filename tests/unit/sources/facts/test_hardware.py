"""Facts about the machine."""

from pathlib import Path

from tests.synthetic_root import make_root, write_files

from necroscope.sources.facts import hardware


def test_cpu_memory_swap_and_boot(tmp_path: Path) -> None:
    make_root(tmp_path, 4)
    write_files(
        tmp_path,
        {
            "proc/cpuinfo": (
                "processor\t: 0\nmodel name\t: Xeon\n\nprocessor\t: 1\nmodel name\t: other\n"
            ),
            "proc/swaps": "Filename\tType\n/dev/zram0 partition 1 0 100\n",
            "sys/devices/system/node/node0/cpulist": "0-3\n",
            "sys/class/dmi/id/product_name": "p4d.24xlarge\n",
        },
    )
    found = {(kind, name): value for kind, name, value in hardware.collect(tmp_path)}
    assert found["cpu", "model"] == "Xeon"
    assert found["cpu", "online"] == "0-3"
    assert found["numa", "node0"] == "0-3"
    assert found["memory", "total_mib"] == str(1188432416 // 1024)
    assert found["memory", "swap"] == "/dev/zram0"
    assert found["dmi", "product_name"] == "p4d.24xlarge"
    assert found["node", "booted"] == "2026-11-15T22:02:00.000Z", "to the minute"
