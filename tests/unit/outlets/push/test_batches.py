"""Batches out of a recording: every minute once, every row once, whatever the clock and the
recorder do.
"""

from pathlib import Path

from tests.written_recording import MINUTE_NS, START_NS, WrittenSegment, at, new_recording, row

from necroscope.fleet.protocol import decode, encode
from necroscope.outlets.push.batches import BatchMaker, PreparedBatch, safe_name
from necroscope.outlets.push.cursor import Cursor
from necroscope.outlets.push.facts import FactLedger
from necroscope.segment.recording import remove_segment
from necroscope.store.query import Store


def event(seconds: float, kind: str = "nic_reset", **values: object) -> tuple[object, ...]:
    return row("events", seconds, kind=kind, severity=3, message=kind, **values)


class Maker:
    """Keeps the cursor as the push does."""

    def __init__(self, recording: Path, labels: dict[str, str] | None = None) -> None:
        self.recording = recording
        self.cursor = Cursor.new("url", 1000)
        self.maker = BatchMaker("node-a", labels or {}, FactLedger({}), lambda: START_NS)

    def next(self, *, is_ended: bool = False) -> PreparedBatch | None:
        made = self.maker.next(Store.open(self.recording), self.cursor, is_ended=is_ended)
        if made is not None:
            assert decode(encode(made.batch)).ignored == ()
            self.cursor = Cursor.from_json(made.cursor.as_json())
        return made

    def all(self, *, is_ended: bool = False) -> list[PreparedBatch]:
        found = []
        while (made := self.next(is_ended=is_ended)) is not None:
            found.append(made)
        return found


def minutes(made: list[PreparedBatch]) -> list[tuple[int, int]]:
    found = [
        made.batch.tables.get("core_minutes", {"time": [], "ticks": [], "cpu": []}) for made in made
    ]
    return [
        ((time - START_NS) // MINUTE_NS, ticks)
        for columns in found
        for time, ticks, cpu in zip(columns["time"], columns["ticks"], columns["cpu"], strict=True)
        if cpu == 0
    ]


def kinds(made: list[PreparedBatch]) -> list[str]:
    return [kind for made in made for kind in made.batch.tables.get("events", {}).get("kind", [])]


def test_a_minute_is_pushed_when_what_comes_after_it_is_there(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r")
    segment = WrittenSegment(recording, 0).ticks(0, 62)
    maker = Maker(recording)
    assert maker.next() is None
    segment.ticks(62, 70)
    assert minutes(maker.all()) == [(0, 60)]
    assert maker.next() is None
    assert minutes(maker.all(is_ended=True)) == [(1, 10)]
    assert maker.next(is_ended=True) is None


def test_what_is_behind_is_pushed_five_minutes_at_a_time(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r")
    WrittenSegment(recording, 0).ticks(0, 700)
    made = Maker(recording).all()
    assert [len(one.batch.tables["core_minutes"]["time"]) // 2 for one in made] == [5, 5, 1]
    assert [number for number, _ in minutes(made)] == list(range(11))


def test_every_event_comes_once_over_batches_segments_and_sealing(tmp_path: Path) -> None:
    recording, found = new_recording(tmp_path / "r"), []
    maker = Maker(recording)
    one = WrittenSegment(recording, 0).add("events", event(1, "a", sequence=1)).ticks(0, 70)
    found += maker.all()
    one.add("events", event(2, "b")).ticks(70, 130)
    found += maker.all()
    one.add("events", event(131, "c")).seal()
    two = (
        WrittenSegment(recording, 131)
        .add("events", event(1, "a", sequence=1), event(132, "d"))
        .ticks(131, 200)
    )
    found += maker.all()
    two.seal()
    found += maker.all(is_ended=True)
    assert kinds(found) == ["a", "b", "c", "d"]
    assert maker.cursor.open == {}


def test_each_batch_tells_who_and_what_it_speaks_for(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r")
    WrittenSegment(recording, 20, cpus=4).ticks(20, 130)
    maker = Maker(recording, {"zone": "a"})
    first, rest = maker.next(), maker.next(is_ended=True)
    assert first is not None
    assert rest is not None
    assert first.batch.batch == "boot-1-1000000000"
    assert rest.batch.batch == "boot-1-1000000001"
    pulse = first.batch.tables["pulses"]
    assert (pulse["recorder_version"], pulse["cpus"]) == (["1.2.3"], [4])
    assert (pulse["span_from"], pulse["span_to"]) == ([at(20)], [at(120)])
    assert (first.batch.labels, rest.batch.labels) == ({"zone": "a"}, {})


def test_a_label_that_changed_is_reported_again(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r")
    segment = WrittenSegment(recording, 0).ticks(0, 70)
    maker = Maker(recording, {"zone": "a"})
    maker.all()
    maker.maker = BatchMaker("node-a", {"zone": "b"}, FactLedger({}), lambda: START_NS)
    segment.ticks(70, 130)
    assert [made.batch.labels for made in maker.all()] == [{"zone": "b"}]


def test_the_rest_of_a_minute_after_a_pause_is_a_row_of_its_own(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r")
    WrittenSegment(recording, 0).ticks(0, 20).seal()
    maker = Maker(recording)
    assert minutes(maker.all(is_ended=True)) == [(0, 20)]
    WrittenSegment(recording, 40).ticks(40, 80)
    assert minutes(maker.all()) == [(0, 20)]


def test_a_hole_of_days_is_passed_over(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r")
    WrittenSegment(recording, 0).ticks(0, 60).seal()
    later = 3 * 86400
    WrittenSegment(recording, later).ticks(later, later + 60).seal()
    made = Maker(recording).all(is_ended=True)
    assert minutes(made) == [(0, 60), (3 * 1440, 60)]
    assert len(made) <= 3


def test_what_retention_took_before_it_was_pushed_is_a_gap(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r")
    one = WrittenSegment(recording, 0).ticks(0, 70)
    maker = Maker(recording)
    maker.all()
    one.ticks(70, 300).seal()
    WrittenSegment(recording, 600).ticks(600, 700)
    remove_segment(one.path.with_suffix(""))
    made = maker.all()
    gaps = [made.batch.tables["gaps"] for made in made if "gaps" in made.batch.tables]
    assert [(gap["time"], gap["end"], gap["table"]) for gap in gaps] == [
        ([at(60)], [at(600)], ["*"])
    ]


def test_a_recorder_that_starts_after_the_clock_was_set_back_is_pushed_too(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r")
    WrittenSegment(recording, 7200).ticks(7200, 7320).seal()
    maker = Maker(recording)
    maker.all(is_ended=True)
    back = WrittenSegment(recording, 3600).add("events", event(3601, "back")).ticks(3600, 3720)
    made = maker.all()
    assert kinds(made) == ["back"]
    assert minutes(made)[0] == (60, 60)
    back.ticks(3720, 3800).add("events", event(3790, "later")).seal()
    assert kinds(maker.all(is_ended=True)) == ["later"]


def test_a_batch_that_is_full_is_followed_by_another(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r")
    segment = WrittenSegment(recording, 0).ticks(0, 70)
    segment.add("events", *(event(1 + number / 1000) for number in range(4500)))
    made = Maker(recording).all()
    assert [len(one.batch.tables["events"]["time"]) for one in made] == [2000, 2000, 500]
    assert minutes(made) == [(0, 60)]


def test_a_store_that_is_empty_gives_nothing(tmp_path: Path) -> None:
    assert Maker(new_recording(tmp_path / "r")).next(is_ended=True) is None


def test_verdicts_speak_for_no_time_of_their_own(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r")
    WrittenSegment(recording, 0).ticks(0, 70)
    maker = Maker(recording)
    maker.all()
    episode = {
        "time": [at(5)],
        "end": [at(6)],
        "kind": ["saturated"],
        "cpu": [0],
        "mode": ["system"],
        "text": ["held"],
    }
    made = maker.maker.of_verdicts(
        Store.open(recording), maker.cursor, (at(0), at(60)), {"episodes": episode, "incidents": {}}
    )
    assert made.batch.tables.keys() == {"episodes", "pulses"}
    assert made.batch.tables["pulses"]["span_from"] == made.batch.tables["pulses"]["span_to"]
    assert made.span == (at(0), at(60))


def test_names_become_what_the_protocol_takes() -> None:
    assert safe_name("node-17.corp") == "node-17.corp"
    assert safe_name("knoten äöü/1") == "knoten-----1"
    assert safe_name("///") == "unknown"
    assert safe_name("") == "unknown"


def test_long_messages_and_facts_come_in_batches_that_a_collector_takes(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r")
    segment = WrittenSegment(recording, 0).ticks(0, 70)
    segment.add(
        "events",
        *(row("events", 1 + number / 1000, kind="x", message="y" * 4000) for number in range(1500)),
    )
    segment.add(
        "facts",
        *(row("facts", 1, kind="x", name=f"{number}", value="z" * 4000) for number in range(1500)),
    )
    made = Maker(recording).all()
    assert sum(len(one.batch.tables.get("events", {"time": []})["time"]) for one in made) == 1500
    assert sum(len(one.batch.tables.get("facts", {"time": []})["time"]) for one in made) == 1500


def test_a_segment_that_is_sealed_while_it_is_read_is_read_again(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r")
    segment = WrittenSegment(recording, 0).ticks(0, 70).add("events", event(5))
    maker, store = Maker(recording), Store.open(recording)
    segment.seal()
    made = maker.maker.next(store, maker.cursor, is_ended=True)
    assert made is not None
    assert kinds([made]) == ["nic_reset"]


def test_a_log_that_reaches_back_over_a_hole_does_not_fill_it(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r")
    WrittenSegment(recording, 0).ticks(0, 60).seal()
    later = 3 * 86400
    WrittenSegment(recording, later).add("events", event(100)).ticks(later, later + 60).seal()
    made = Maker(recording).all(is_ended=True)
    assert len(made) <= 3
    assert minutes(made) == [(0, 60), (3 * 1440, 60)]
    spans = [
        (made.batch.tables["pulses"]["span_from"][0], made.batch.tables["pulses"]["span_to"][0])
        for made in made
    ]
    assert sum(end - start for start, end in spans) <= 2 * MINUTE_NS + 2


def test_journals_that_could_not_be_sealed_hold_nobody_up(tmp_path: Path) -> None:
    recording = new_recording(tmp_path / "r")
    for number in range(5):
        left = WrittenSegment(recording, 300 * number).add(
            "events", event(300 * number, f"left{number}")
        )
        left.ticks(300 * number, 300 * number + 60).leave()
    live = WrittenSegment(recording, 1500).ticks(1500, 1570).add("events", event(1501, "new"))
    maker = Maker(recording)
    found = maker.all()
    live.ticks(1570, 1630).add("events", event(1600, "newer"))
    found += maker.all()
    assert sorted(kinds(found)) == ["left0", "left1", "left2", "left3", "left4", "new", "newer"]
    live.ticks(1630, 1690)
    maker.all()
    assert len(maker.cursor.open) == 1, "what stands still while another grows is done"
