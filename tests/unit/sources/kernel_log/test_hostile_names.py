"""What users choose (comm, file, cgroup, interface and unit names) never becomes a kernel event of
somebody else: every pattern's own lines, as names, in every record in which the kernel quotes one.
"""

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from necroscope.cli.opened_recording import events_of
from necroscope.interchange.dmesg import read_dmesg
from necroscope.model.event import Event
from necroscope.sources.kernel_log import journal, kmsg
from necroscope.sources.kernel_log.line import LogLine, clean_line
from necroscope.sources.kernel_log.pattern import Role
from necroscope.sources.kernel_log.patterns import PATTERNS, PatternSet
from necroscope.sources.kernel_log.sequences import Sequencer
from necroscope.sources.kernel_log.syslog_file import SyslogReader

EXAMPLES = [
    line.partition("\t")[2]
    for line in (Path(__file__).parents[3] / "data/kernel_log/examples.tsv")
    .read_text()
    .splitlines()
]
SHORT = [
    "a b eth0: Link up",
    "mlx5_core a: b",
    "INFO: task a",
    "NVRM: GPU 0: x",
    "(t=9999 jiffies",
    "  Tx Queue <6>",
    "ena a b: c: 1",
    "nfs: server a OK",
    "XFS (a): x",
    "clocksource: a",
    "gve a b: x",
    "Killed process ",
    "x,pid=1,uid=0",
    "Oops: 0000 [#1]",
    "BUG: Bad page x",
]
PID = 31337
IP = "ip 0000000000400078 sp 00007ffe12345678 error 4"
# Where the kernel and daemons quote a name: the most bytes of it, the record, and the pattern that
# may know the record, if one may.
QUOTES = [
    (15, "{name}[31337]: segfault at 0 " + IP + " in x[400000+1000] likely on CPU 1", "segfault"),
    (15, "{name}[31337] vsyscall attempted with vsyscall=none ip:ffffffffff600000 cs:33", None),
    (15, "{name} invoked oom-killer: gfp_mask=0xcc0(GFP_KERNEL), order=0, oom_score_adj=0", "oom.invoked"),
    (15, "{name}: page allocation failure: order:4, mode:0x40cc0(GFP_KERNEL)", "memory.allocation"),
    (15, "{name} (31337): drop_caches: 3", None),
    (15, "{name} uses obsolete (PF_INET,SOCK_PACKET)", None),
    (15, "warning: `{name}' uses 32-bit capabilities (legacy support in use)", None),
    (15, "netlink: 4 bytes leftover after parsing attributes in process `{name}'.", None),
    (15, "traps: {name}[31337] trap invalid opcode ip:400078 sp:7ffe12345678 error:0 in x[400000+1000]", None),
    (15, "CPU: 1 PID: 31337 Comm: {name} Tainted: G        W         6.1.0 #1", None),
    (15, "INFO: task {name}:31337 blocked for more than 122 seconds.", "hung_task"),
    (15, "watchdog: BUG: soft lockup - CPU#1 stuck for 26s! [{name}:31337]", "lockup.soft"),
    (15, "Out of memory: Killed process 31337 ({name}) total-vm:1kB, anon-rss:2kB, file-rss:3kB", "oom.killed"),
    (15, "mmap: {name} (31337): VmData 1 exceed data ulimit 2. Update limits", None),
    (15, "EXT4-fs error (device sda1): ext4_lookup:1455: inode #2: comm {name}: bad", "ext4.error"),
    (255, "x[31337]: segfault at 0 " + IP + " in {name}[400000+1000] likely on CPU 1", "segfault"),
    (255, "traps: x[31337] trap int3 ip:400078 sp:7ffe12345678 error:0 in {name}[400000+1000]", None),
    (255, " in {name}[400000+1000]", None),
    (255, "process '{name}' started with executable stack", None),
    (255, 'audit: type=1326 audit(1.2:3): auid=1 pid=31337 comm="x" exe="{name}" sig=0', None),
    (255, "cgroup: fork rejected by pids controller in /{name}", None),
    (255, "Memory cgroup stats for /{name}:", None),
    (255, "Task in /{name} killed as a result of limit of /{name}", "oom.memcg_limit_old"),
    (
        255,
        "oom-kill:constraint=CONSTRAINT_MEMCG,nodemask=(null),cpuset=/,mems_allowed=0,oom_memcg=/{name},task_memcg=/{name},task=x,pid=31337,uid=65534",
        "oom.constraint",
    ),
    (255, "x cpuset={name} mems_allowed=0", None),
    (255, 'ptrace attach of "{name}"[31337] was attempted by "x"[31337]', None),
]  # fmt: skip
# Interface names have no whitespace, slash or colon (dev_valid_name).
INTERFACES = ["{name}: entered promiscuous mode", "veth0: renamed from {name}"]


def names(most_bytes: int) -> Iterator[bytes]:
    """Each pattern's line as a name, whole and after a newline, and ever shorter ends of it."""
    for example in (*EXAMPLES, *SHORT):
        raw = example.encode()
        yield from (raw, b"x\n" + raw, raw + b"\n", b"\x01c" + raw, b"\n" + raw + b"\n")
        yield from (raw[start:] for start in range(1, max(1, len(raw) - 4), 3))


def read_events(lines: list[LogLine]) -> list[Event]:
    sequencer = Sequencer(PatternSet())
    events = [event for line in lines for event in sequencer.feed(line, line.time_ns)[0]]
    return events + sequencer.finish()


def by_kmsg(raw: bytes) -> list[LogLine]:
    escaped = b"".join(
        b"%c" % byte if 0x20 <= byte < 0x7F and byte != 0x5C else b"\\x%02x" % byte for byte in raw
    )
    record = kmsg.parse(b"4,7,1000000,-;" + escaped + b"\n")
    assert record is not None
    reader, lines = kmsg.KmsgReader(-1, lambda ns: ns), []
    reader._take(record, lines)
    return lines


def by_journal(raw: bytes) -> list[LogLine]:
    entry = {
        "__REALTIME_TIMESTAMP": "1", "_SOURCE_MONOTONIC_TIMESTAMP": "1", "PRIORITY": "4",
        "SYSLOG_FACILITY": "0", "_TRANSPORT": "kernel", "MESSAGE": list(raw),
    }  # fmt: skip
    line = journal.parse(json.dumps(entry).encode(), lambda ns: ns)
    return [line] if line is not None else []


def accused(event: Event, pattern_id: str | None) -> bool:
    """Whether an event is more than what the kernel says of the process that it is about."""
    if event.pattern == "memory.allocation":
        return (event.cpu, event.pid, event.comm, event.device) != (None, None, None, None)
    return event.pattern != pattern_id or event.pid not in (PID, None) or event.queue is not None


@pytest.mark.parametrize("read", [by_kmsg, by_journal])
@pytest.mark.parametrize(("most_bytes", "record", "pattern_id"), QUOTES)
def test_a_name_is_never_a_kernel_event(
    read: Callable[[bytes], list[LogLine]], most_bytes: int, record: str, pattern_id: str | None
) -> None:
    before, *between, after = record.encode().split(b"{name}")
    for name in names(most_bytes):
        chosen = name[:most_bytes]
        raw = chosen.join([before, *between, after])
        wrong = [event for event in read_events(read(raw)) if accused(event, pattern_id)]
        assert wrong == [], raw


@pytest.mark.parametrize("record", INTERFACES)
def test_an_interface_name_is_never_a_kernel_event(record: str) -> None:
    for name in names(15):
        chosen = bytes(byte for byte in name if byte not in b" \t\n\v\f\r/:")[:15]
        assert read_events(by_kmsg(record.encode().replace(b"{name}", chosen))) == []


def test_a_cgroup_name_cannot_put_the_blame_on_another_cgroup() -> None:
    hostile = "t,task_memcg=/system.slice/kubelet.service,task=kubelet,pid=1,uid=0"
    record = next(record for _, record, pattern_id in QUOTES if pattern_id == "oom.constraint")
    assert read_events(by_kmsg(record.replace("{name}", hostile).encode())) == []
    record = next(record for _, record, pattern_id in QUOTES if pattern_id == "oom.memcg_limit_old")
    hostile = "t killed as a result of limit of /kubepods/victim"
    assert read_events(by_kmsg(record.replace("{name}", hostile).encode())) == []


@pytest.mark.parametrize("example", EXAMPLES)
def test_what_a_daemon_forwards_to_the_kernels_log_is_no_event(example: str) -> None:
    """journald writes `identifier[pid]: message`, and the user chooses both."""
    for text in (f"{example}[4242]: x", f"x[4242]: {example}", f"{example}[1]: {example}"):
        line = LogLine(1, 1, 3, 1, False, clean_line(text))
        assert read_events([line]) == []


def test_a_hang_that_is_one_record_of_many_lines_is_read_whole() -> None:
    raw = (
        b"ixgbe 0000:02:00.1 eth3: Detected Tx Unit Hang\n  Tx Queue             <6>\n"
        b"  TDH, TDT             <0>, <9>\n  next_to_use          <9>\n"
    )
    (event,) = read_events(by_kmsg(raw))
    assert (event.kind, event.device, event.queue) == ("nic_tx_hang", "eth3", 6)
    assert event.message == "ixgbe 0000:02:00.1 eth3: Detected Tx Unit Hang"
    assert json.loads(event.fields or "")["head_hex"] == "0"


FORGED = "watchdog: BUG: soft lockup - CPU#1 stuck for 23s! [kubelet:4242]"


def test_lines_of_a_syslog_file_with_one_stamp_are_one_record(tmp_path: Path) -> None:
    path, stamp = tmp_path / "kern.log", "Jan  2 11:00:00 host kernel: [1.000005] "
    path.write_text(f"{stamp}traps: x[31337] trap invalid opcode in x\n{stamp}{FORGED}[4+1]\n")
    now_ns = 1_767_351_600 * 10**9
    reader = SyslogReader(path, lambda ns: ns + now_ns - 10**9, True, lambda: now_ns)
    lines = [line for _ in range(2) for line in reader.read_lines(9)]
    reader.close()
    assert [line.by_kernel for line in lines] == [True]
    assert read_events(lines) == []


@pytest.mark.parametrize("stamp", ["", "<4>[    1.000005] "])
def test_a_line_within_a_record_of_dmesg_is_no_event(tmp_path: Path, stamp: str) -> None:
    path = tmp_path / "dmesg"
    path.write_text(
        f"<4>[    1.000005] traps: x[31337] trap invalid opcode in x\n{stamp}{FORGED}\n"
    )
    assert [line.message for line in read_dmesg(path)] == [
        f"traps: x[31337] trap invalid opcode in x\\x0a{FORGED}"
    ]
    assert events_of([(1, line) for line in read_dmesg(path)]) == []


def test_every_part_of_a_story_ends_where_its_line_ends_or_is_longer_than_a_comm() -> None:
    """A comm with a part's words at the start of a record must not join an open story."""
    for pattern in PATTERNS:
        if pattern.role is Role.JOINS:
            for name in names(15):
                text = name[:15].decode() + "[31337]: segfault at 0 " + IP
                assert pattern.regex.match(text) is None
