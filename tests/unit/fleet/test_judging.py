"""One bundle judged; and bundles that are wrong in all the ways we could think of."""

import errno
import io
import json
import tarfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from tests.fleet_evidence import analysed_incidents, made_bundle, put_bundle

from necroscope import __version__
from necroscope.errors import CorruptData
from necroscope.fleet import judging
from necroscope.fleet.evidence import StoredBundle
from necroscope.fleet.judging import judge, read_and_judge
from necroscope.fleet.lake import Lake
from necroscope.fleet.lake_tables import DAY_NS, LAKE_TABLES

NOW_NS = 1_800_000_000_000_000_000


@pytest.fixture
def evidence(tmp_path: Path) -> StoredBundle:
    return put_bundle(Lake.open(str(tmp_path / "lake")), "gpu-17")


def packed(files: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as tar:
        for name, content in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(content)
            tar.addfile(member, io.BytesIO(content))
    return bytes(pa.compress(out.getvalue(), "zstd", asbytes=True))


def test_the_verdict_is_that_of_the_node(evidence: StoredBundle) -> None:
    judged = judge(evidence, made_bundle(0)[1], NOW_NS)
    assert (judged.broken, judged.unread) == (None, None)
    assert judged.rows.schema.equals(LAKE_TABLES["incidents"])
    (row,) = judged.rows.to_pylist()
    (on_node,) = analysed_incidents()
    assert row["cause"] == "zombie-memcg-walk"
    assert json.loads(row["events"]) == ["nic_reset"]
    assert json.loads(row["report"]) == json.loads(on_node["report"])
    assert (row["analysed_by"], row["analysed_ns"]) == (__version__, NOW_NS)


def test_the_path_says_whose_it_is_and_not_the_bundle(evidence: StoredBundle) -> None:
    (row,) = judge(evidence, made_bundle(0)[1], NOW_NS).rows.to_pylist()
    assert (row["cluster"], row["node"], row["bundle"]) == ("eu-1", "gpu-17", evidence.id)


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"no bundle at all",
        made_bundle(0)[1][:1000],
        made_bundle(0)[1][: len(made_bundle(0)[1]) // 2],
        packed({}),
        packed({"recording.json": b"{}"}),
        packed({"../outside": b"x"}),
        packed(
            {
                "recording.json": b'{"crc32": "00000000",\n"content": {}}',
                "2026-11-16T03-59-01.958Z/manifest.json": b"[]",
            }
        ),
    ],
    ids=["empty", "garbage", "cut", "half", "no files", "no recording", "outside", "damaged"],
)
def test_a_broken_bundle_is_reported_and_has_no_rows(
    evidence: StoredBundle, content: bytes
) -> None:
    judged = judge(evidence, content, NOW_NS)
    assert judged.broken
    assert judged.unread is None
    assert judged.rows.num_rows == 0


@pytest.mark.parametrize(
    "error", [KeyError("x"), RecursionError(), MemoryError(), CorruptData("x"), ZeroDivisionError()]
)
def test_whatever_the_analysis_raises_costs_this_bundle_only(
    evidence: StoredBundle, error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    def failing(*_: Any, **__: Any) -> None:
        raise error

    monkeypatch.setattr(judging, "diagnose", failing)
    assert judge(evidence, made_bundle(0)[1], NOW_NS).broken


def test_a_full_disk_of_the_worker_is_not_the_bundles_fault(
    evidence: StoredBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    content = made_bundle(0)[1]

    def refused(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", refused)
    judged = judge(evidence, content, NOW_NS)
    assert judged.broken is None
    assert "No space left" in (judged.unread or "")


def test_what_arrow_says_of_a_file_is_the_bundles_fault(
    evidence: StoredBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(*_: Any, **__: Any) -> None:
        raise OSError("Couldn't deserialize thrift")

    monkeypatch.setattr(judging, "diagnose", unreadable)
    assert judge(evidence, made_bundle(0)[1], NOW_NS).broken


def test_moments_that_no_lake_takes_are_refused_at_the_door(
    evidence: StoredBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [dict(analysed_incidents()[0], time=5)]
    monkeypatch.setattr(judging, "_incidents", lambda *_: rows)
    assert "not a valid moment" in (judge(evidence, made_bundle(0)[1], NOW_NS).broken or "")


def test_evidence_of_days_to_come_is_refused_at_the_door(evidence: StoredBundle) -> None:
    (row,) = judge(evidence, made_bundle(0)[1], NOW_NS).rows.to_pylist()
    found = judge(evidence, made_bundle(0)[1], row["time"] - 3 * DAY_NS).broken or ""
    assert "days ahead" in found


def test_an_analysis_that_does_not_end_is_ended(
    evidence: StoredBundle, monkeypatch: pytest.MonkeyPatch
) -> None:
    def endless(*_: Any, **__: Any) -> None:
        while True:
            time.sleep(0.01)

    monkeypatch.setattr(judging, "diagnose", endless)
    began_s = time.monotonic()
    judged = judge(evidence, made_bundle(0)[1], NOW_NS, limit_s=0.2)
    assert time.monotonic() - began_s < 20
    assert judged.broken == "its analysis takes longer than 0 s"


def test_a_bundle_that_is_gone_may_be_there_next_time(
    evidence: StoredBundle, tmp_path: Path
) -> None:
    lake = Lake.open(str(tmp_path / "lake"))
    lake.delete(evidence.path)
    judged = read_and_judge(lake, evidence, NOW_NS)
    assert judged.broken is None
    assert "is not in the lake" in (judged.unread or "")
