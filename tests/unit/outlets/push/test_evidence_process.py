"""The incidents of a window as rows of the lake, with their evidence; on a drawn incident, written
by the real journal.
"""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from tests.drawn_node import at, drawn_node
from tests.growing_recording import GrowingRecording
from tests.ledger_entries import ledger_entry

from necroscope.analysis.engine import diagnose
from necroscope.fleet.bundle import unpack
from necroscope.fleet.lake_tables import JSON_LIMIT, LAKE_TABLES
from necroscope.model.span import Span
from necroscope.outlets.push import evidence_process
from necroscope.outlets.push.evidence_process import (
    BUNDLE_FILE,
    EVIDENCE_FILE,
    main,
    make_evidence,
)
from necroscope.segment.checksum import read_checked
from necroscope.store.query import Store
from necroscope.verdicts.keeper import Keeper
from necroscope.verdicts.ledger_writer import LedgerWriter

HELD = """
    core 0:  ....................................
    core 1:  ................kkkkkkkkkkkk........
    k: system  kubelet[1872]  /system.slice/kubelet.service  main, Read > ksys_read, vfs_read, memcg_stat_show, mem_cgroup_iter
"""


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    node = drawn_node(HELD).event(25, "nic_reset", "eth0: TX timeout", cpu=1, device="eth0")
    return (
        GrowingRecording(tmp_path_factory.mktemp("drawn") / "r", node)
        .grow(36)
        .pin(5, 36)
        .seal()
        .directory
    )


def made(recording: Path, work: Path, since_ns: int = 0) -> dict[str, Any]:
    window = Span(at(0), at(36))
    make_evidence(Store.open(recording), window, since_ns, 7, work)
    content: dict[str, Any] = read_checked(work / EVIDENCE_FILE)
    return content


def test_incidents_are_rows_of_the_lake(recording: Path, tmp_path: Path) -> None:
    found = made(recording, tmp_path)
    (incident,) = found["incidents"]
    assert set(incident) == set(LAKE_TABLES["incidents"].names) - {"cluster", "node"}
    place = incident["core"], incident["mode"], incident["culprit_comm"]
    assert place == (1, "system", "kubelet")
    assert json.loads(incident["events"]) == ["nic_reset"]
    assert json.loads(incident["report"])["id"] == incident["id"]
    assert (incident["analysed_ns"], incident["bundle"]) == (7, found["bundle"])
    assert any(one["kind"] == "saturated" and one["cpu"] == 1 for one in found["episodes"])
    assert set(found["episodes"][0]) == set(LAKE_TABLES["episodes"].names) - {"cluster", "node"}


def test_the_bundle_gives_the_same_verdict(recording: Path, tmp_path: Path) -> None:
    found = made(recording, tmp_path)
    content = (tmp_path / BUNDLE_FILE).read_bytes()
    assert len(content) < 2_000_000
    (incident,) = diagnose(Store.open(unpack(content, tmp_path / "unpacked"))).incidents
    assert incident.id == found["incidents"][0]["id"]
    assert incident.verdict.cause == found["incidents"][0]["cause"]


def test_what_was_over_before_is_not_sent_again(recording: Path, tmp_path: Path) -> None:
    found = made(recording, tmp_path, at(35))
    assert (found["incidents"], found["episodes"], found["bundle"]) == ([], [], None)
    assert not (tmp_path / BUNDLE_FILE).exists()


def test_a_window_that_the_ledger_reaches_over_is_not_judged_again(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "r"
    shutil.copytree(recording, copy)
    keeper = Keeper(copy, lambda _: None)
    keeper.turn(is_live=False)
    keeper.close()
    monkeypatch.setattr("necroscope.verdicts.reading.diagnose", None)
    assert [one["id"] for one in made(copy, tmp_path)["incidents"]] == [
        one.id for one in diagnose(Store.open(recording)).wrong
    ]


def test_what_is_judged_here_keeps_the_id_that_the_ledger_gave(
    recording: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "r"
    shutil.copytree(recording, copy)
    writer = LedgerWriter(copy)
    writer.append([ledger_entry("unknown", 17, 20, state="open")])
    writer.close()
    (incident,) = made(copy, tmp_path)["incidents"]
    assert incident["id"] == "17-core1"
    assert incident["culprit_comm"] == "kubelet"


def test_the_process_writes_what_it_found(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence_process, "_step_back", lambda: None)
    assert main([str(recording), str(at(0)), str(at(36)), "0", str(tmp_path)]) == 0
    content = read_checked(tmp_path / EVIDENCE_FILE)
    assert content["bundle"] == content["incidents"][0]["bundle"]


def test_a_recording_that_is_gone_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(evidence_process, "_step_back", lambda: None)
    assert main([str(tmp_path / "gone"), "1", "2", "0", str(tmp_path)]) == 1
    assert "there is no directory" in capsys.readouterr().err


def test_a_report_that_is_too_long_loses_lists_and_not_the_verdict(tmp_path: Path) -> None:
    node = drawn_node(HELD)
    for number in range(1500):
        node.event(20 + number / 1000, "nic_reset", f"eth0: {'x' * 200}", cpu=1, device="eth0")
    many = GrowingRecording(tmp_path / "many", node).grow(36).seal().directory
    (row,) = made(many, tmp_path)["incidents"]
    assert len(row["report"]) <= JSON_LIMIT
    assert json.loads(row["report"])["verdict"]["summary"] == row["summary"]
