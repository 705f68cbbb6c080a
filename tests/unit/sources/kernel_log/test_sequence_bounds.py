"""Storms, hostile lines and users' own patterns: an event stays small, and the kernel's own."""

import json

import pytest
from tests.kernel_log_stories import ENA0, dump, fields, read_story, said

from necroscope.model.event import Event
from necroscope.model.tables import TABLES
from necroscope.sources.kernel_log.patterns import PatternSet
from necroscope.sources.kernel_log.sequence import TEXT_LIMIT
from necroscope.sources.kernel_log.sequences import OPEN_LIMIT, Sequencer
from necroscope.sources.kernel_log.user_patterns import parse_user_patterns

USER_PATTERN = """
[[pattern]]
id = 'acme.reset'
kind = 'acme_reset'
regex = '(?P<device>eth\\d+): Trigger (?P<word>\\w+)'
alarm = true
"""


def test_a_storm_is_counted_and_stays_small() -> None:
    sequencer = Sequencer(PatternSet())
    storm = "Found a Tx that wasn't completed on time, qid 2, index {}."
    (event,), alarms = read_story(
        [said(ENA0 + storm.format(n), n / 10_000) for n in range(10_000)], sequencer
    )
    assert event.lines is not None
    assert len(event.lines) < 4096
    assert event.lines.endswith("[9976 more lines are left out]")
    assert fields(event)["line_counts"] == {"ena.tx_not_completed": 10_000}
    assert len(alarms) == 1


def test_long_lines_do_not_grow_an_event_beyond_its_bound() -> None:
    lines = [said("kernel BUG at x.c:1!")] + [said(" " + "y" * 8000) for _ in range(60)]
    (event,), _ = read_story(lines)
    assert event.lines is not None
    assert len(event.lines) < TEXT_LIMIT + 100


def test_a_storm_of_devices_keeps_few_stories_open() -> None:
    sequencer = Sequencer(PatternSet())
    lines = [
        said(f"ena 0000:00:{n:02x}.0 eth{n}: Transmit time out", n / 1000) for n in range(1000)
    ]
    events = [event for line in lines for event in sequencer.feed(line, 0)[0]]
    assert len(sequencer._open) <= OPEN_LIMIT + 2
    assert len(events) + len(sequencer.finish()) == 1000


def test_a_line_of_user_space_never_joins_a_story_of_the_kernel() -> None:
    lines = [
        said(ENA0 + "Trigger reset is on"),
        said(ENA0 + "Trigger reset is on", by_kernel=False),
    ]
    forged = said("ena 0000:00:05.0: Device reset completed successfully", 1, by_kernel=False)
    events, alarms = read_story([*lines, forged])
    assert [(event.by_kernel, fields(event).get("outcome")) for event in events] == [
        (False, "completed"),
        (True, None),
    ]
    assert [alarm.by_kernel for alarm in alarms] == [True, False]


def test_a_trace_of_user_space_never_joins_a_story_of_the_kernel() -> None:
    lines = [
        said("watchdog: BUG: soft lockup - CPU#4 stuck for 22s! [java:40646]"),
        said(" forged+0x1/0x2", by_kernel=False),
    ]
    (event,), _ = read_story(lines)
    assert event.lines is None


@pytest.mark.parametrize(
    "text",
    [
        "watchdog: BUG: soft lockup - CPU#99999999999999999999 stuck for 22s! [x:99999999999]",
        "watchdog: BUG: soft lockup - CPU#40000 stuck for 999999999999999999999999s! ["
        + "a" * 15
        + ":1]",
        ENA0
        + "TX q 5 is paused for too long (threshold 5). usecs since napi 6. napi scheduled: 1. napi"
        " CPU: -1",
        "watchdog: BUG: soft lockup - CPU#1 stuck for 1s! [\x1b]0;evil\x07:5]",
        "watchdog: BUG: soft lockup - CPU#1 stuck for 1s! [" + "\x1b" * 15 + ":5]",
    ],
)
def test_hostile_numbers_and_names_fit_their_columns(text: str) -> None:
    (event,), _ = read_story([said(text)])
    row = dict(zip((column.name for column in TABLES["events"].columns), event.row(), strict=True))
    assert row["cpu"] is None or row["cpu"] == 1
    assert row["pid"] is None or row["pid"] < 2**31
    assert row["comm"] is None or (len(row["comm"]) <= 200 and row["comm"].isprintable())
    assert row["message"].isprintable()
    json.loads(row["fields"] or "{}")


def test_rows_have_the_columns_of_the_table() -> None:
    (event,), _ = read_story(dump("ena_2.17.0_poll_starvation.txt"))
    columns = TABLES["events"].columns
    assert [
        column.name.replace("time", "time_ns", column.name == "time") for column in columns
    ] == list(Event.__slots__)
    assert all(
        value is not None
        for value, column in zip(event.row(), columns, strict=True)
        if not column.nullable
    )


def test_a_line_of_its_own_kind_is_an_event_at_once() -> None:
    sequencer = Sequencer(PatternSet())
    (event,), alarms = sequencer.feed(
        said("NVRM: Xid (PCI:0000:01:00): 31, pid=1234, name=python3, Ch 00000008"), 0
    )
    assert (event.kind, event.device, event.pid, event.comm, event.lines) == (
        "gpu_xid",
        "0000:01:00",
        1234,
        "python3",
        None,
    )
    assert (fields(event), alarms) == ({"xid": 31}, [])


def test_a_users_pattern_makes_its_own_event_beside_ours() -> None:
    patterns = parse_user_patterns(USER_PATTERN, "x")
    events, alarms = read_story(
        [said(ENA0 + "Trigger reset is on")], Sequencer(PatternSet(patterns))
    )
    assert [(event.kind, event.pattern, event.device) for event in events] == [
        ("acme_reset", "acme.reset", "eth0"),
        ("nic_reset", "ena.reset_start", "eth0"),
    ]
    assert fields(events[0]) == {"word": "reset"}
    assert [alarm.kind for alarm in alarms] == ["acme_reset", "nic_reset"]


@pytest.mark.parametrize(
    ("text", "by_kernel"), [("eth0: Trigger x", True), ("x eth0: Trigger x", False)]
)
def test_a_users_pattern_is_the_kernels_only_from_the_start_of_the_record(
    text: str, by_kernel: bool
) -> None:
    patterns = PatternSet(parse_user_patterns(USER_PATTERN, "test"))
    (event,), _ = read_story([said(text)], Sequencer(patterns))
    assert event.by_kernel is by_kernel
