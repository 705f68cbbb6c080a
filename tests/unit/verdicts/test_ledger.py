"""The ledger's file: a line without a valid checksum never happened, whatever a crash or a disk did
to it.
"""

import errno
import io
import math
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from tests.unit.verdicts.conftest import MakeIncident

from necroscope.model.span import Span
from necroscope.verdicts.changes import Judgement, changes
from necroscope.verdicts.entry import IncidentState, LedgerEntry
from necroscope.verdicts.ledger import LEDGER_FILE, Ledger, UnjudgedStretch, line, records
from necroscope.verdicts.ledger_writer import LedgerWriter, is_kept
from necroscope.verdicts.rules import rules


def entries_of(incident: MakeIncident, count: int) -> list[LedgerEntry]:
    return [
        LedgerEntry(IncidentState.CLOSED, number, incident(100 * number, 100 * number + 9))
        for number in range(count)
    ]


def test_a_reader_sees_what_was_appended_once(tmp_path: Path, incident: MakeIncident) -> None:
    reader = Ledger.open(tmp_path)
    assert reader.refresh() == []
    writer = LedgerWriter(tmp_path)
    first, second = entries_of(incident, 2)
    writer.append([first], (5, 9), ["no stacks"])
    assert reader.refresh() == [first]
    assert (reader.judged, reader.notes) == ((5, 9), ("no stacks",))
    writer.append([second])
    assert reader.refresh() == [second]
    assert reader.refresh() == []
    assert reader.incidents() == [first, second]


def test_of_several_entries_with_one_id_the_last_is_true(
    tmp_path: Path, incident: MakeIncident
) -> None:
    writer = LedgerWriter(tmp_path)
    writer.append([LedgerEntry(IncidentState.OPEN, 1, incident())])
    writer.append([LedgerEntry(IncidentState.CLOSED, 2, incident())])
    assert [entry.state for entry in Ledger.open(tmp_path).incidents()] == [IncidentState.CLOSED]


def test_a_file_cut_at_any_byte_gives_what_was_whole(
    tmp_path: Path, incident: MakeIncident
) -> None:
    writer = LedgerWriter(tmp_path)
    entries = entries_of(incident, 2)
    writer.append(entries, (1, 2))
    data = (tmp_path / LEDGER_FILE).read_bytes()
    ends = [place + 1 for place, byte in enumerate(data) if byte == ord("\n")]
    for size in range(len(data)):
        (tmp_path / LEDGER_FILE).write_bytes(data[:size])
        whole = sum(end <= size for end in ends)
        # The first line is the version.
        assert Ledger.open(tmp_path).incidents() == entries[: max(0, whole - 1)]


def test_a_flipped_bit_costs_its_line_only(tmp_path: Path, incident: MakeIncident) -> None:
    writer = LedgerWriter(tmp_path)
    first, second = entries_of(incident, 2)
    writer.append([first, second])
    data = bytearray((tmp_path / LEDGER_FILE).read_bytes())
    data[data.index(b'"state":"closed"')] ^= 1
    (tmp_path / LEDGER_FILE).write_bytes(data)
    assert Ledger.open(tmp_path).incidents() == [second]


def test_who_takes_over_repairs_a_torn_tail(tmp_path: Path, incident: MakeIncident) -> None:
    writer = LedgerWriter(tmp_path)
    first, second = entries_of(incident, 2)
    writer.append([first])
    writer.close()
    with (tmp_path / LEDGER_FILE).open("ab") as file:
        file.write(line({"entry": second.as_json()})[:-5])
    again = LedgerWriter(tmp_path)
    again.append([second])
    assert Ledger.open(tmp_path).incidents() == [first, second]
    assert b"\n\n" not in (tmp_path / LEDGER_FILE).read_bytes()


def test_a_ledger_of_another_version_counts_as_none(tmp_path: Path, incident: MakeIncident) -> None:
    entry = LedgerEntry(IncidentState.CLOSED, 1, incident()).as_json()
    data = line({"schema": 99}) + line({"entry": entry})
    (tmp_path / LEDGER_FILE).write_bytes(data)
    assert Ledger.open(tmp_path).incidents() == []
    LedgerWriter(tmp_path)
    assert next(iter(records((tmp_path / LEDGER_FILE).read_bytes()))) == {
        "schema": 1,
        "judged_by": rules(),
        "revision": 0,
    }


def test_hostile_lines_are_passed_over(tmp_path: Path, incident: MakeIncident) -> None:
    good = LedgerEntry(IncidentState.CLOSED, 1, incident())
    nested = b'{"entry":' + b"[" * 50_000 + b"]" * 50_000 + b"}"
    lines = [line({"schema": 1}), line([]), line({"entry": {}}), line({"judged": "ab"})]
    (tmp_path / LEDGER_FILE).write_bytes(
        b"".join([*lines, nested + b"\n", b"\n", line({"entry": good.as_json()})])
    )
    assert Ledger.open(tmp_path).incidents() == [good]


def test_a_link_in_its_place_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / LEDGER_FILE).symlink_to("/etc/passwd")
    assert Ledger.open(tmp_path).refresh() == []


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir])
def test_what_is_not_a_file_in_its_place_is_not_waited_for(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    make(tmp_path / LEDGER_FILE)
    assert Ledger.open(tmp_path).refresh() == []


class FailingFile(io.FileIO):
    def read(self, size: int | None = -1) -> bytes:
        raise OSError(errno.EIO, "Input/output error")


def test_a_disk_that_fails_gives_no_entries(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    LedgerWriter(tmp_path)
    monkeypatch.setattr("necroscope.verdicts.ledger.open_regular", FailingFile)
    assert Ledger.open(tmp_path).refresh() == []


def test_numbers_out_of_bounds_are_passed_over(tmp_path: Path, incident: MakeIncident) -> None:
    good = LedgerEntry(IncidentState.CLOSED, 1, incident())
    far = replace(good, incident=replace(incident(1), from_ns=10**30))
    verdict = replace(incident().verdict, confidence=math.nan)
    unsure = replace(good, incident=replace(incident(2), verdict=verdict))
    huge = replace(verdict, confidence=10**400)
    unlikely = replace(good, incident=replace(incident(3), verdict=huge))
    lines = [{"entry": one.as_json()} for one in (far, unsure, unlikely, good)]
    hostile = [{"judged": [math.inf, 0], "notes": []}, {"judged": [10**30, 0], "notes": []}]
    data = b"".join(map(line, [{"schema": 1}, *hostile, *lines]))
    (tmp_path / LEDGER_FILE).write_bytes(data)
    ledger = Ledger.open(tmp_path)
    assert (ledger.incidents(), ledger.judged) == ([good], None)


def test_a_rewrite_keeps_the_newest_that_fit(
    tmp_path: Path, incident: MakeIncident, monkeypatch: pytest.MonkeyPatch
) -> None:
    writer = LedgerWriter(tmp_path)
    entries = entries_of(incident, 20)
    writer.append(entries)
    size = len(line({"entry": entries[-1].as_json()}))
    monkeypatch.setattr("necroscope.verdicts.ledger_writer._KEPT_BYTES", 3 * size)
    writer.rewrite(0)
    assert Ledger.open(tmp_path).incidents() == entries[-3:]


def test_one_process_keeps_it(tmp_path: Path) -> None:
    assert not is_kept(tmp_path)
    writer = LedgerWriter(tmp_path)
    assert is_kept(tmp_path)
    with pytest.raises(BlockingIOError):
        LedgerWriter(tmp_path)
    writer.close()
    assert not is_kept(tmp_path)


def test_it_stays_bounded_while_one_incident_goes_on(
    tmp_path: Path, incident: MakeIncident, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("necroscope.verdicts.ledger_writer._REWRITE_BYTES", 10_000)
    writer, reader = LedgerWriter(tmp_path), Ledger.open(tmp_path)
    gone = LedgerEntry(IncidentState.CLOSED, 0, incident(1, 2))
    writer.append([gone])
    for second in range(100):
        last = LedgerEntry(IncidentState.OPEN, second, incident(10, 20 + second))
        writer.append([last], (0, second))
        writer.rewrite_if_large(last.incident.from_ns)
    assert os.path.getsize(tmp_path / LEDGER_FILE) < 15_000
    assert Ledger.open(tmp_path).incidents() == [last]
    assert reader.refresh() == [last]
    assert reader.incidents() == [last]


def test_a_stretch_that_was_not_judged_is_remembered_until_it_is(tmp_path: Path) -> None:
    writer = LedgerWriter(tmp_path)
    stretch = UnjudgedStretch(Span(10, 20), "no rows")
    writer.append([], Span(0, 30), ["a note"], [stretch])
    writer.append([], Span(0, 40), [])
    writer.rewrite(0)
    assert Ledger.open(tmp_path).unjudged == (stretch,)
    writer.append([], Span(0, 50), [], [UnjudgedStretch(Span(5, 25))])
    assert Ledger.open(tmp_path).unjudged == ()
    many = [UnjudgedStretch(Span(place, place + 1), "no rows") for place in range(100)]
    writer.append([], Span(0, 60), [], many)
    assert len(Ledger.open(tmp_path).unjudged) == 20


def test_revisions_grow_beyond_those_of_entries_that_are_gone(
    tmp_path: Path, incident: MakeIncident
) -> None:
    writer = LedgerWriter(tmp_path)
    writer.append([LedgerEntry(IncidentState.MERGED, 1 << 62, incident(1, 2))])
    writer.rewrite(incident(10).from_ns)
    ledger = Ledger.open(tmp_path)
    judgement = Judgement(0, incident().to_ns, False, [incident()])
    (entry,) = changes(ledger.entries.values(), judgement, ledger.revision)
    assert (len(ledger.entries), entry.revision) == (0, (1 << 62) + 1)
