"""Which events matter, and that a line which was read twice is reported once."""

from tests.drawn_node import DrawnNode, at, drawn_node
from tests.logged_events import event_rows

from necroscope.analysis.happenings import Happening, happenings
from necroscope.analysis.node import Node
from necroscope.sources.kernel_log.line import LogLine

ENA = "ena 0000:20:03.0 eth0: "
STORY = [
    ENA
    + "TX q 5 is paused for too long (threshold 5000000). Time since last napi 6596000 usec. napi"
    " scheduled: 1",
    ENA + "Trigger reset is on",
    "ena 0000:20:03.0: Device reset completed successfully",
]


def heard(*lines: str, second: float, first: int | None = 4242) -> list[LogLine]:
    """Lines as one recorder heard them, numbered from `first` on."""
    return [
        LogLine(
            at(second) + number * 1_000_000,
            None if first is None else first + number,
            3,
            0,
            True,
            text,
        )
        for number, text in enumerate(lines)
    ]


def found(*recorders: list[LogLine]) -> list[Happening]:
    """Of a recording that several recorders made, one after the other."""
    node: DrawnNode = drawn_node("core 0: ..............................")
    node.added["events"] = [row for lines in recorders for row in event_rows(lines)]
    return happenings(Node(node, (at(0), at(30))).columns("events"))


def test_a_reset_that_a_second_recorder_reads_again_is_reported_once() -> None:
    assert [one.kind for one in found(heard(*STORY, second=9), heard(*STORY, second=9.000004))] == [
        "nic_reset"
    ]


def test_of_a_story_that_the_first_recorder_left_the_whole_is_reported() -> None:
    for recorders in (
        (heard(STORY[0], second=9), heard(*STORY, second=9.1)),
        (heard(*STORY, second=9), heard(STORY[0], second=9.1)),
    ):
        (one,) = found(*recorders)
        assert (one.kind, one.fields["outcome"]) == ("nic_reset", "completed")


def test_the_same_words_again_are_another_reset() -> None:
    assert len(found(heard(*STORY, second=9), heard(*STORY, second=11, first=4300))) == 2


def test_the_same_number_in_the_next_boot_is_another_reset() -> None:
    assert len(found(heard(*STORY, second=1), heard(*STORY, second=25))) == 2


def test_events_without_a_number_are_all_told() -> None:
    assert (
        len(found(heard(*STORY, second=9, first=None), heard(*STORY, second=9.5, first=None))) == 2
    )
