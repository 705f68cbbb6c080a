"""The verdict on a window as rows of the lake, with its evidence; on a drawn incident, written by
the real journal.
"""

import json
from pathlib import Path

import pytest
from tests.drawn_node import at, drawn_node
from tests.growing_recording import GrowingRecording

from necroscope.analysis.engine import diagnose
from necroscope.fleet.bundle import unpack
from necroscope.fleet.lake_tables import JSON_LIMIT, LAKE_TABLES
from necroscope.outlets.push import window_analysis
from necroscope.outlets.push.window_analysis import BUNDLE_FILE, VERDICTS_FILE, analyse, main
from necroscope.segment.checksum import read_checked
from necroscope.store.query import Store

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


def test_incidents_are_rows_of_the_lake(recording: Path, tmp_path: Path) -> None:
    found = analyse(
        Store.open(recording), (at(0), at(36)), 0, is_final=True, now_ns=7, work=tmp_path
    )
    (incident,) = found.incidents
    assert set(incident) == set(LAKE_TABLES["incidents"].names) - {"cluster", "node"}
    assert (incident["core"], incident["mode"], incident["culprit_comm"]) == (
        1,
        "system",
        "kubelet",
    )
    assert json.loads(incident["events"]) == ["nic_reset"]
    assert json.loads(incident["report"])["id"] == incident["id"]
    assert (incident["analysed_ns"], incident["bundle"]) == (7, found.bundle_name)
    assert any(episode["kind"] == "saturated" and episode["cpu"] == 1 for episode in found.episodes)
    assert set(found.episodes[0]) == set(LAKE_TABLES["episodes"].names) - {"cluster", "node"}


def test_the_bundle_gives_the_same_verdict(recording: Path, tmp_path: Path) -> None:
    found = analyse(
        Store.open(recording), (at(0), at(36)), 0, is_final=True, now_ns=7, work=tmp_path
    )
    assert found.bundle is not None
    again = diagnose(Store.open(unpack(found.bundle, tmp_path / "unpacked")))
    (incident,) = again.incidents
    assert incident.id == found.incidents[0]["id"]
    assert incident.verdict.cause == found.incidents[0]["cause"]


def test_an_early_look_has_neither_evidence_nor_episodes(recording: Path, tmp_path: Path) -> None:
    found = analyse(
        Store.open(recording), (at(0), at(30)), 0, is_final=False, now_ns=7, work=tmp_path
    )
    assert len(found.incidents) == 1
    assert (found.bundle, found.bundle_name, found.episodes) == (None, None, [])
    assert found.incidents[0]["bundle"] is None


def test_what_was_over_before_is_not_told_again(recording: Path, tmp_path: Path) -> None:
    found = analyse(
        Store.open(recording), (at(0), at(36)), at(35), is_final=True, now_ns=7, work=tmp_path
    )
    assert (found.incidents, found.episodes, found.bundle) == ([], [], None)


def test_the_process_writes_what_it_found(
    recording: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(window_analysis, "_step_back", lambda: None)
    assert main([str(recording), str(at(0)), str(at(36)), "0", "final", str(tmp_path)]) == 0
    content = read_checked(tmp_path / VERDICTS_FILE)
    assert len(content["incidents"]) == 1
    assert content["bundle"] == content["incidents"][0]["bundle"]
    assert (tmp_path / BUNDLE_FILE).stat().st_size < 2_000_000


def test_a_recording_that_is_gone_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(window_analysis, "_step_back", lambda: None)
    assert main([str(tmp_path / "gone"), "1", "2", "0", "final", str(tmp_path)]) == 1
    assert "there is no directory" in capsys.readouterr().err


def test_a_report_that_is_too_long_loses_lists_and_not_the_verdict(
    recording: Path, tmp_path: Path
) -> None:
    node = drawn_node(HELD)
    for number in range(1500):
        node.event(20 + number / 1000, "nic_reset", f"eth0: {'x' * 200}", cpu=1, device="eth0")
    many = GrowingRecording(tmp_path / "many", node).grow(36).seal().directory
    found = analyse(Store.open(many), (at(0), at(36)), 0, is_final=False, now_ns=7, work=tmp_path)
    report = json.loads(found.incidents[0]["report"])
    assert len(found.incidents[0]["report"]) <= JSON_LIMIT
    assert report["verdict"]["summary"] == found.incidents[0]["summary"]
