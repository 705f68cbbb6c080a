"""/proc/interrupts and the `interrupts` table."""

from pathlib import Path

import pytest
from tests.synthetic_root import at_second, make_root, write_files

from necroscope.errors import SourceUnavailable
from necroscope.model.tables import TABLES
from necroscope.sources.procfs.interrupts import Interrupts, Line, parse_header, parse_line

DATA = Path(__file__).parents[3] / "data/procfs"
SYNTHETIC_QUEUES = 2


def _parse(data: bytes) -> dict[str, Line]:
    header, *lines = data.splitlines()
    cpus = parse_header(header)
    parsed = [parse_line(line, len(cpus)) for line in lines]
    return {line.label: line for line in parsed if line is not None}


def _counted(source: Interrupts, second: float) -> list[tuple[object, ...]]:
    """cpu, irq, count of the rows that count something."""
    rows = source.read(at_second(second)).rows["interrupts"]
    return [(row[1], row[2], row[8]) for row in rows if row[8]]


def test_a_capture_gives_numbers_names_and_actions() -> None:
    lines = _parse((DATA / "linux-6.18-vm/interrupts").read_bytes())
    assert lines["38"].action == "virtio2-input.0"
    assert lines["24"].action == "ACPI:Ged"
    assert lines["LOC"].action == "Local timer interrupts"
    assert "ERR" not in lines
    assert "MIS" not in lines


def test_offline_cores_have_no_column_and_their_numbers_are_kept() -> None:
    data = (DATA / "interrupts-5.4-ena").read_bytes()
    assert parse_header(data.splitlines()[0]) == (0, 2, 3)
    lines = _parse(data)
    assert lines["26"] == Line("26", "ens5-Tx-Rx-1", (0, 790113, 0))
    assert lines["16"].action == "i801_smbus, ehci_hcd:usb1"
    assert lines["27"].action == ""


@pytest.mark.parametrize(
    ("line", "action"),
    [
        (b" 27: 1 2     GICv3  27 Level     arch_timer", "arch_timer"),
        (
            b" 28: 1 2  Hyper-V PCIe MSI 134217728-edge      mlx5_async0@pci:0001:00:02.0",
            "mlx5_async0@pci:0001:00:02.0",
        ),
        (b" 24: 1 2  xen-dyn    -event     eth0-q0-tx", "eth0-q0-tx"),
        (b"  9: 0 4   IO-APIC   9-fasteoi ", ""),
        (b"  2: 0 0   IO-APIC   2-edge    ", ""),
        (b"IPI0:   5   6       Rescheduling interrupts", "Rescheduling interrupts"),
        (b" 30: 1 2   PCI-MSI 5-edge      \x1b[31mred\xff", "\\x1b[31mred\\xff"),
    ],
)
def test_actions_of_other_machines_are_found(line: bytes, action: str) -> None:
    parsed = parse_line(line, 2)
    assert parsed is not None
    assert parsed.action == action


def test_the_first_read_tells_which_core_each_queue_goes_to(tmp_path: Path) -> None:
    source = Interrupts(make_root(tmp_path, 4, queues=SYNTHETIC_QUEUES))
    now = at_second(0)
    rows = source.read(now).rows["interrupts"]
    assert rows == [
        (now.time_ns, 0, "300", "eth0-Tx-Rx-0", "eth0", 0, "0", 0, 0),
        (now.time_ns, 1, "301", "eth0-Tx-Rx-1", "eth0", 1, "1", 0, 0),
    ]
    assert all(len(row) == len(TABLES["interrupts"].columns) for row in rows)
    source.close()


def test_rows_are_only_of_interrupts_that_came(tmp_path: Path) -> None:
    source = Interrupts(make_root(tmp_path, 2, queues=SYNTHETIC_QUEUES))
    source.read(at_second(0))
    assert source.read(at_second(10)).rows["interrupts"] == []
    make_root(tmp_path, 2, step=1, queues=SYNTHETIC_QUEUES)
    now = at_second(20)
    rows = source.read(now).rows["interrupts"]
    assert (now.time_ns, 1, "301", "eth0-Tx-Rx-1", "eth0", 1, "1", 10_000_000_000, 900) in rows
    assert {row[2] for row in rows} == {"300", "301", "NMI", "LOC", "RES", "CAL", "TLB"}
    source.close()


def test_a_new_segment_tells_the_affinities_again(tmp_path: Path) -> None:
    source = Interrupts(make_root(tmp_path, 2, queues=SYNTHETIC_QUEUES))
    source.read(at_second(0))
    source.start_segment()
    assert len(source.read(at_second(10)).rows["interrupts"]) == SYNTHETIC_QUEUES
    assert source.read(at_second(20)).rows["interrupts"] == []
    source.close()


def test_a_moved_queue_is_reported_even_if_it_stands_still(tmp_path: Path) -> None:
    source = Interrupts(make_root(tmp_path, 4, queues=SYNTHETIC_QUEUES))
    source.read(at_second(0))
    write_files(tmp_path, {"proc/irq/301/effective_affinity_list": "2-3\n"})
    rows = source.read(at_second(10)).rows["interrupts"]
    assert [(row[1], row[2], row[6], row[8]) for row in rows] == [
        (2, "301", "2-3", 0),
        (3, "301", "2-3", 0),
    ]
    source.close()


def test_the_wanted_affinity_stands_in_for_the_effective_one(tmp_path: Path) -> None:
    make_root(tmp_path, 4, queues=1)
    (tmp_path / "proc/irq/300/effective_affinity_list").unlink()
    write_files(tmp_path, {"proc/irq/300/smp_affinity_list": "1-2\n"})
    source = Interrupts(tmp_path)
    assert [(row[1], row[6]) for row in source.read(at_second(0)).rows["interrupts"]] == [
        (1, "1-2"),
        (2, "1-2"),
    ]
    source.close()


def test_a_core_that_leaves_and_returns_does_not_shift_the_columns(tmp_path: Path) -> None:
    source = Interrupts(tmp_path)
    texts = (
        "  CPU0 CPU1 CPU2\n LOC: 10 20 30  Local timer interrupts\n",
        "  CPU0 CPU2\n LOC: 11 33  Local timer interrupts\n",
        "  CPU0 CPU1 CPU2\n LOC: 12 25 34  Local timer interrupts\n",
        "  CPU0 CPU1 CPU2\n LOC: 12 26 34  Local timer interrupts\n",
    )
    counted = []
    for second, text in enumerate(texts):
        write_files(tmp_path, {"proc/interrupts": text})
        counted.append(_counted(source, second))
    assert counted == [
        [],
        [(0, "LOC", 1), (2, "LOC", 3)],
        [(0, "LOC", 1), (2, "LOC", 1)],
        [(1, "LOC", 1)],
    ]
    source.close()


def test_an_interrupt_given_to_another_device_starts_anew(tmp_path: Path) -> None:
    source = Interrupts(tmp_path)
    write_files(tmp_path, {"proc/interrupts": "  CPU0\n 40: 10  PCI-MSI 1-edge      nvme0q1\n"})
    source.read(at_second(0))
    text = "  CPU0\n 40: 90  PCI-MSI 1-edge      eth0-Tx-Rx-5\n"
    write_files(tmp_path, {"proc/interrupts": text, "proc/irq/40/effective_affinity_list": "0\n"})
    rows = source.read(at_second(1)).rows["interrupts"]
    assert [row[1:7] + row[8:] for row in rows] == [(0, "40", "eth0-Tx-Rx-5", "eth0", 5, "0", 0)]
    source.close()


@pytest.mark.parametrize(
    ("before", "after"), [(2**31, 5), (2**31, 2**32 - 1 - 2**31), (3_000_000_000, 5)]
)
def test_counts_that_start_anew_give_no_row(tmp_path: Path, before: int, after: int) -> None:
    source = Interrupts(tmp_path)
    for second, count in enumerate((before, after)):
        write_files(
            tmp_path, {"proc/interrupts": f"  CPU0\n LOC: {count}  Local timer interrupts\n"}
        )
        counted = _counted(source, second)
    assert counted == []
    source.close()


@pytest.mark.parametrize("text", ["", "\n", "  CPU0 CPU1", "nonsense\n"])
def test_an_empty_or_cut_file_is_unavailable(tmp_path: Path, text: str) -> None:
    write_files(tmp_path, {"proc/interrupts": text})
    source = Interrupts(tmp_path)
    with pytest.raises(SourceUnavailable):
        source.read(at_second(0))
    source.close()


def test_a_cut_last_line_is_left_out(tmp_path: Path) -> None:
    source = Interrupts(tmp_path)
    for second, text in enumerate(
        ("  CPU0\n LOC: 10  Local\n TLB: 10  TLB\n", "  CPU0\n LOC: 11  Local\n TLB: 99  T")
    ):
        write_files(tmp_path, {"proc/interrupts": text})
        counted = _counted(source, second)
    assert counted == [(0, "LOC", 1)]
    source.close()
