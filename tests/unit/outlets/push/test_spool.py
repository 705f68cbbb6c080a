"""The spool: durable, in order, bounded, and never wrong data."""

from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from necroscope.errors import CorruptData, RecordingBusy, RecordingError
from necroscope.outlets.push.spool import BATCH, BUNDLE, Spool
from necroscope.segment.recording import Identity, make_recording
from necroscope.store.query import Store


def test_entries_come_back_in_order_with_what_they_held(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    spool.add(9, (1, 2), BATCH, {"a": 1}, b"nine")
    spool.add(10, (2, 3), BUNDLE, {}, b"")
    spool.close()
    again = Spool(tmp_path / "spool")
    assert [(entry.number, entry.from_ns, entry.to_ns, entry.kind) for entry in again.entries] == [
        (9, 1, 2, "batch"),
        (10, 2, 3, "bundle"),
    ]
    assert again.read(again.entries[0]) == ({"a": 1}, b"nine")
    again.remove(again.entries[0])
    assert [entry.number for entry in again.entries] == [10]
    again.close()


@given(place=st.floats(0, 0.999), mask=st.integers(1, 255))
@settings(
    max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
def test_a_flipped_byte_is_noticed_wherever_it_is(tmp_path: Path, place: float, mask: int) -> None:
    spool = Spool(tmp_path / "spool")
    entry = spool.add(1, (1, 2), BATCH, {"cursor": {}}, b"body" * 10)
    file = spool.directory / entry.name
    data = bytearray(file.read_bytes())
    data[int(place * len(data))] ^= mask
    file.write_bytes(data)
    with pytest.raises(CorruptData):
        spool.read(entry)
    spool.close()


@pytest.mark.parametrize("size", [0, 3, 15, 30])
def test_a_file_that_is_cut_off_is_noticed(tmp_path: Path, size: int) -> None:
    spool = Spool(tmp_path / "spool")
    entry = spool.add(1, (1, 2), BATCH, {}, b"body" * 10)
    (spool.directory / entry.name).write_bytes((spool.directory / entry.name).read_bytes()[:size])
    with pytest.raises(CorruptData):
        spool.read(entry)
    spool.close()


def test_what_a_crash_left_half_written_goes(tmp_path: Path) -> None:
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / ".00000000000000000001.1.2.batch.tmp").write_bytes(b"half")
    Spool(tmp_path / "spool").close()
    assert list((tmp_path / "spool").iterdir()) == []


def test_over_the_bound_the_oldest_are_named_but_never_the_newest(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool", limit_bytes=300)
    for number in range(5):
        spool.add(number, (number, number + 1), BATCH, {}, bytes(100))
    assert [entry.number for entry in spool.overflow()] == [0, 1, 2]
    spool.add(9, (9, 10), BATCH, {}, bytes(1000))
    assert [entry.number for entry in spool.overflow()] == [0, 1, 2, 3, 4]
    spool.close()


def test_refused_entries_are_kept_for_a_look_within_a_bound(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    for number in range(60):
        spool.refuse(spool.add(number, (1, 2), BATCH, {}, b"x"))
    assert not spool.entries
    names = sorted(path.name for path in spool.refused.iterdir())
    assert len(names) == 50
    assert names[-1].startswith(f"{59:020d}.")
    spool.close()


def test_two_at_once_are_refused(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    with pytest.raises(RecordingBusy, match="another process pushes"):
        Spool(tmp_path / "spool")
    spool.close()
    Spool(tmp_path / "spool").close()


def test_a_place_that_cannot_be_written_is_reported_with_a_way_out(tmp_path: Path) -> None:
    with pytest.raises(RecordingError, match="cannot make a spool") as caught:
        Spool(tmp_path / "absent" / "spool")
    assert "--spool" in caught.value.hint


def test_readers_and_recorders_pass_it_by(tmp_path: Path) -> None:
    recording = tmp_path / "recording"
    make_recording(recording, Identity("node", "boot", "x"))
    spool = Spool(recording / ".push")
    spool.add(1, (1, 2), BATCH, {}, b"x")
    spool.close()
    assert Store.open(recording).info().segments == 0
    (recording / "recording.json").unlink()
    make_recording(recording, Identity("node", "boot", "x"))


def test_damaged_facts_are_none_and_a_damaged_cursor_is_reported(tmp_path: Path) -> None:
    spool = Spool(tmp_path / "spool")
    assert spool.read_cursor() is None
    spool.write_facts({"a": "b"})
    spool.write_cursor({"number": 1})
    assert spool.read_facts() == {"a": "b"}
    for name in ("facts.json", "cursor.json"):
        (spool.directory / name).write_bytes(
            (spool.directory / name).read_bytes().replace(b"1", b"2").replace(b"b", b"c")
        )
    assert spool.read_facts() == {}
    with pytest.raises(CorruptData):
        spool.read_cursor()
    spool.close()


def test_a_spool_that_others_could_prepare_is_refused(tmp_path: Path) -> None:
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool").chmod(0o777)
    with pytest.raises(RecordingError, match="every user may write"):
        Spool(tmp_path / "spool")
    (tmp_path / "spool").chmod(0o775)
    Spool(tmp_path / "spool").close()
