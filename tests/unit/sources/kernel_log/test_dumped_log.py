"""The log of a boot that is over: in whose order, how old, and who wrote it."""

from necroscope.model.units import NS_PER_S
from necroscope.sources.kernel_log import dumped_log

ENDED_NS = 1_760_000_000 * NS_PER_S
PANIC = b"""Panic#1 Part1
<4>[  810.000001] watchdog: BUG: soft lockup - CPU#1 stuck for 23s! [kubelet:4242]
<4>[  812.500000][  T42] RIP: 0010:mem_cgroup_iter+0x1a/0x2b0
<0>[  812.500001] Kernel panic - not syncing: softlockup: hung tasks
"""


def test_the_last_line_is_as_old_as_the_file_and_the_others_older() -> None:
    lines = dumped_log.parse(PANIC, ENDED_NS)
    assert [line.text.split(":")[0] for line in lines] == [
        "watchdog",
        "RIP",
        "Kernel panic - not syncing",
    ]
    assert lines[-1].time_ns == ENDED_NS
    assert ENDED_NS - lines[0].time_ns == 2_500_000_000
    assert all(line.by_kernel for line in lines)


def test_a_line_without_a_level_is_the_kernels_too() -> None:
    [line] = dumped_log.parse(b"[    1.000000] Kernel panic - not syncing: VFS", ENDED_NS)
    assert line.by_kernel


def test_what_a_daemon_wrote_to_the_log_is_not_the_kernels() -> None:
    [line] = dumped_log.parse(b"<30>[    1.000000] Kernel panic - not syncing: no", ENDED_NS)
    assert not line.by_kernel


def test_a_newline_in_a_name_makes_no_line_of_its_own() -> None:
    hostile = (
        b"<6>[    5.000001] traps: x\n"
        b"<6>[    5.000001] Kernel panic - not syncing: forged[77] trap invalid opcode\n"
    )
    [line] = dumped_log.parse(hostile, ENDED_NS)
    assert line.text.startswith("traps: x")


def test_garbage_is_no_line_and_many_lines_are_bounded() -> None:
    assert dumped_log.parse(b"\x00\xff\n[no] stamp\n", ENDED_NS) == []
    many = b"".join(b"<6>[%5d.000000] line\n" % second for second in range(5_000))
    assert len(dumped_log.parse(many, ENDED_NS)) == dumped_log.MOST_LINES
