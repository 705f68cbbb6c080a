"""/proc/net/snmp, netstat and nf_conntrack, and the `network` table."""

from pathlib import Path

import pytest
from tests.synthetic_root import at_second, make_root, write_files

from necroscope.errors import SourceUnavailable
from necroscope.model.tables import TABLES
from necroscope.sources.procfs.network import ConntrackLines, NetworkCounters

DATA = Path(__file__).parents[3] / "data/procfs/linux-6.18-vm"
NAMES = [column.name for column in TABLES["network"].columns]


def read_twice(root: Path, tmp_path: Path) -> dict[str, object]:
    source = NetworkCounters(root)
    assert not source.read(at_second(0)).rows
    make_root(tmp_path, 2, step=5)
    [row] = source.read(at_second(1)).rows["network"]
    source.close()
    return dict(zip(NAMES, row, strict=True))


def test_a_row_says_what_was_counted_since_the_one_before(tmp_path: Path) -> None:
    row = read_twice(make_root(tmp_path, 2), tmp_path)
    assert (row["tcp_out_segments"], row["tcp_retransmits"], row["listen_drops"]) == (5000, 5, 5)
    # The entries are the same on the line of each core, the counters are not.
    assert (row["conntrack_insert_failed"], row["conntrack_entries"]) == (10, 4000)
    assert (row["elapsed_ns"], row["tcp_active_opens"]) == (1_000_000_000, 0)


def test_a_capture_of_this_kernel_has_every_name(tmp_path: Path) -> None:
    folder = {
        "proc/1/net/snmp": (DATA / "snmp").read_text(),
        "proc/1/net/netstat": (DATA / "netstat").read_text(),
        "proc/1/net/stat/nf_conntrack": (DATA / "nf_conntrack").read_text(),
    }
    write_files(tmp_path, folder)
    reading = NetworkCounters(tmp_path).read(at_second(0))
    assert (reading.gaps, reading.trouble) == ([], None)


def test_without_connection_tracking_its_columns_are_null_and_a_gap_says_so(tmp_path: Path) -> None:
    root = make_root(tmp_path, 2)
    (root / "proc/1/net/stat/nf_conntrack").unlink()
    source = NetworkCounters(root)
    [gap] = source.read(at_second(0)).gaps
    assert "conntrack_insert_failed" in gap.cause
    [row] = source.read(at_second(1)).rows["network"]
    named = dict(zip(NAMES, row, strict=True))
    assert named["conntrack_entries"] is None
    assert named["tcp_retransmits"] == 0


def test_counters_that_begin_again_are_unknown_and_not_negative(tmp_path: Path) -> None:
    source = NetworkCounters(make_root(tmp_path, 2, step=9))
    source.read(at_second(0))
    make_root(tmp_path, 2, step=1)
    [row] = source.read(at_second(1)).rows["network"]
    assert dict(zip(NAMES, row, strict=True))["tcp_retransmits"] is None


@pytest.mark.parametrize(
    "text", ["", "Tcp: InSegs\n", "Tcp: InSegs\nTcp: x\n", "Tcp: InSegs\nTcp:\n"]
)
def test_an_empty_or_cut_file_is_unavailable(tmp_path: Path, text: str) -> None:
    root = make_root(tmp_path, 2)
    write_files(tmp_path, {"proc/1/net/snmp": text})
    with pytest.raises(SourceUnavailable):
        NetworkCounters(root).read(at_second(0))


@pytest.mark.parametrize("text", [b"", b"entries\n", b"entries drop\n0 1\n", b"a b\n1 2\n"])
def test_another_conntrack_is_refused(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"cut|other names"):
        ConntrackLines().parse(text)
