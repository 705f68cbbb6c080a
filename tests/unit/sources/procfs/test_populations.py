"""How many objects of each kind exist, who holds most, and what that costs: files of a made-up node
and of this one.
"""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.synthetic_root import at_second, write_files

from necroscope.sources.procfs import slab_caches
from necroscope.sources.procfs.counted_lists import CountedList, count_lines
from necroscope.sources.procfs.largest_holders import LargestHolders
from necroscope.sources.procfs.population_files import parse_protocols, parse_sockstat
from necroscope.sources.procfs.populations import Populations

SOCKSTAT = "sockets: used 900\nTCP: inuse {0} orphan 2 tw 70 alloc {0} mem 8\nUDP: inuse 1 mem 0\n"
PROTOCOLS = (
    "protocol  size sockets  memory press maxhdr  slab module     cl co\n"
    "UNIX-STREAM 1152    30      -1   NI       0   yes  kernel      y  n\n"
    "UNIX      1152     12      -1   NI       0   yes  kernel      y  n\n"
    "TCP       2304      1     114   no     192   yes  kernel      y  y\n"
)
SLABINFO = (
    "slabinfo - version: 2.1\n# name <active_objs> <num_objs>\n"
    "mnt_cache {0} 90000 384 21 2 : tunables 0 0 0 : slabdata 4 4 0\n"
    "small_cache 12 21 384 21 2 : tunables 0 0 0 : slabdata 4 4 0\n"
)


class AtOnce:
    """The background without its thread: what is started is done."""

    def __init__(self) -> None:
        self.result: Any = None
        self.trouble = None
        self.started = 0

    @property
    def is_idle(self) -> bool:
        return self.result is None

    def start(self, work: Callable[[], Any]) -> None:
        self.started += 1
        self.result = work()

    def take(self) -> Any:
        result, self.result = self.result, None
        return result

    def close(self) -> None:
        pass


def make_root(root: Path, sockets: int = 5_000, mounts: int = 3_000) -> Path:
    files = {
        "proc/loadavg": "0.1 0.2 0.3 1/234 5678\n",
        "proc/1/net/sockstat": SOCKSTAT.format(sockets),
        "proc/1/net/protocols": PROTOCOLS,
        "proc/slabinfo": SLABINFO.format(mounts),
        "proc/1/mountinfo": "22 1 8:1 / / rw - ext4 /dev/vda rw\n" * 7,
        "proc/key-users": "    0:     9 8/8 3/1000000 40/25000000\n 1000: 2 4/4 1/200 9/20000\n",
    }
    write_files(root, files)
    return root


def counts_of(source: Populations, second: float) -> dict[str, int]:
    rows = source.read(at_second(second)).rows["populations"]
    return {str(row[1]): int(str(row[2])) for row in rows if row[3] is None}


def test_every_number_is_reported_once_and_then_only_what_changed(tmp_path: Path) -> None:
    source = Populations(make_root(tmp_path), AtOnce())  # type: ignore[arg-type]
    first = counts_of(source, 0)
    assert first["tcp-sockets"] == 5_000
    assert (first["threads"], first["unix-sockets"], first["keys"]) == (234, 42, 12)
    assert first["slab:mnt_cache"] == 3_000
    assert "slab:small_cache" not in first
    assert counts_of(source, 2)["mounts"] == 7
    assert counts_of(source, 12) == {}
    make_root(tmp_path, sockets=5_010)
    assert counts_of(source, 22) == {}, "a hundredth is the least that is told"
    make_root(tmp_path, sockets=8_000)
    assert counts_of(source, 32) == {"tcp-sockets": 8_000}
    source.start_segment()
    assert counts_of(source, 42)["threads"] == 234


def test_what_cannot_be_read_is_a_gap_with_the_reason_and_never_zero(tmp_path: Path) -> None:
    root = make_root(tmp_path)
    for closed in ("proc/sys/net/netfilter/nf_conntrack_count", "proc/1/net/ip_vs"):
        (root / closed).mkdir(parents=True)
    source = Populations(root, AtOnce())  # type: ignore[arg-type]
    readings = [source.read(at_second(0)), source.read(at_second(2))]
    causes = [gap.cause for reading in readings for gap in reading.gaps]
    kinds = {row[1] for reading in readings for row in reading.rows["populations"]}
    assert any(cause.startswith("conntrack-entries: cannot read") for cause in causes)
    assert "ipvs-services: Is a directory" in causes
    assert kinds.isdisjoint({"conntrack-entries", "ipvs-services", "neighbours"})
    assert not [cause for cause in causes if "neighbours" in cause], "no module, nothing to miss"
    assert source.read(at_second(14)).gaps == [], "a reason is told once per segment"


def test_it_is_read_every_ten_seconds_and_every_two_while_a_number_moves(tmp_path: Path) -> None:
    source = Populations(make_root(tmp_path), AtOnce())  # type: ignore[arg-type]
    counts_of(source, 0)
    counts_of(source, 2)
    assert source.idle_until_ns > at_second(10).monotonic_ns
    make_root(tmp_path, sockets=9_000)
    counts_of(source, 12)
    counts_of(source, 14)
    make_root(tmp_path, sockets=12_000)
    counts_of(source, 16)
    assert source.idle_until_ns == 0


def slabs(root: Path, mounts: int, megabytes: int | None) -> None:
    make_root(root, mounts=mounts)
    if megabytes is not None:
        text = f"SReclaimable: 5 kB\nSUnreclaim:   {megabytes * 1024} kB\n"
        write_files(root, {"proc/meminfo": text})


def test_slabs_are_read_when_their_memory_moves_and_again_while_thousands_come(
    tmp_path: Path,
) -> None:
    slabs(tmp_path, 3_000, 900)
    source = Populations(tmp_path, AtOnce())  # type: ignore[arg-type]
    counts_of(source, 0)
    slabs(tmp_path, 4_000, 901)
    for second in (2, 12, 22, 32):
        assert "slab:mnt_cache" not in counts_of(source, second), "4 ms of the kernel's time"
    slabs(tmp_path, 30_000, 909)
    assert counts_of(source, 42)["slab:mnt_cache"] == 30_000
    assert source.idle_until_ns == 0, "it is read again in two seconds"
    slabs(tmp_path, 31_000, 910)
    assert counts_of(source, 44)["slab:mnt_cache"] == 31_000
    slabs(tmp_path, 200, 903)
    assert counts_of(source, 54)["slab:mnt_cache"] == 200, "what went is told as well"


def test_slabs_are_read_at_a_trigger_and_at_the_start_of_a_segment(tmp_path: Path) -> None:
    slabs(tmp_path, 3_000, 900)
    source = Populations(tmp_path, AtOnce())  # type: ignore[arg-type]
    counts_of(source, 0)
    counts_of(source, 2)
    assert source.idle_until_ns > at_second(5).monotonic_ns
    slabs(tmp_path, 4_000, 900)
    assert counts_of(source, 5)["slab:mnt_cache"] == 4_000, "a trigger"
    slabs(tmp_path, 5_000, 900)
    source.start_segment()
    assert counts_of(source, 15)["slab:mnt_cache"] == 5_000
    slabs(tmp_path, 6_000, 900)
    assert counts_of(source, 320)["slab:mnt_cache"] == 6_000, "and when long enough has passed"


def test_where_the_memory_of_slabs_is_not_told_they_are_read_every_ten_seconds(
    tmp_path: Path,
) -> None:
    source = Populations(make_root(tmp_path), AtOnce())  # type: ignore[arg-type]
    counts_of(source, 0)
    slabs(tmp_path, 4_000, None)
    assert "slab:mnt_cache" not in counts_of(source, 2)
    assert counts_of(source, 12)["slab:mnt_cache"] == 4_000


def test_lists_are_walked_again_when_a_number_moves(tmp_path: Path) -> None:
    background = AtOnce()
    source = Populations(make_root(tmp_path), background)  # type: ignore[arg-type]
    for second in (0, 2, 12, 22):
        counts_of(source, second)
    assert background.started == 1
    make_root(tmp_path, sockets=9_000)
    counts_of(source, 32)
    assert background.started == 2


def test_a_cache_that_emptied_is_reported_again(tmp_path: Path) -> None:
    source = Populations(make_root(tmp_path), AtOnce())  # type: ignore[arg-type]
    counts_of(source, 0)
    make_root(tmp_path, mounts=40)
    assert counts_of(source, 12)["slab:mnt_cache"] == 40


def test_caches_that_the_kernel_has_merged_bear_all_their_names(tmp_path: Path) -> None:
    folder = tmp_path / "sys/kernel/slab"
    (folder / ":A-0000384").mkdir(parents=True)
    for name in ("posix_timers_cache", "mnt_cache"):
        (folder / name).symlink_to(":A-0000384")
    merged = slab_caches.merged_names(tmp_path)
    found = slab_caches.kinds({"mnt_cache": 70_000, "dentry": 5_000}, merged, ())
    assert found == {"slab:mnt_cache/posix_timers_cache": 70_000, "slab:dentry": 5_000}


def test_a_long_list_is_counted_seldom() -> None:
    time_s, counted = [0.0], []

    def count() -> int:
        time_s[0] += 0.02
        counted.append(time_s[0])
        return 10_000

    one = CountedList("mounts", count)
    for _ in range(30):
        assert one.read(lambda: time_s[0]) == 10_000
        time_s[0] += 10
    assert len(counted) == 2


def test_sockets_of_all_versions_of_a_family_are_one_kind() -> None:
    assert parse_protocols(PROTOCOLS.encode())["unix-sockets"] == 42
    assert parse_sockstat(SOCKSTAT.format(9).encode())["time-wait-sockets"] == 70


def test_who_holds_most_files_on_this_machine_is_found() -> None:
    held = [os.open("/dev/null", os.O_RDONLY) for _ in range(600)]
    try:
        looked = LargestHolders(Path("/"))
        holders = [one for _ in range(8) for one in looked.look(are_mappings_many=False)]
    finally:
        for descriptor in held:
            os.close(descriptor)
    own = [one for one in holders if one.pid == os.getpid() and one.kind == "open-files"]
    assert own
    assert own[-1].count >= 600


def test_a_table_is_counted_below_its_head(tmp_path: Path) -> None:
    (tmp_path / "shm").write_text("key shmid\n0 1\n0 2\n")
    assert count_lines(tmp_path / "shm", head=1) == 2
    assert count_lines(tmp_path / "nothing") is None
