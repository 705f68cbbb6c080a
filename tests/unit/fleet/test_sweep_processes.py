"""A sweep on this machine's cores: processes that judge, are killed, and end with who started
them.
"""

import os
import signal
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

import pytest
from tests.fleet_evidence import put_bundle, verdicts_in

from necroscope.fleet import sweep_processes
from necroscope.fleet.evidence import StoredBundle
from necroscope.fleet.judging import BundleJudgement, read_and_judge
from necroscope.fleet.lake import Lake
from necroscope.fleet.sweep import sweep
from necroscope.fleet.sweep_processes import Processes

DEADLY = "deadly"


@pytest.fixture
def lake(tmp_path: Path) -> Lake:
    return Lake.open(str(tmp_path / "lake"))


def judge_or_die(lake_url: str, evidence: StoredBundle, now_ns: int) -> BundleJudgement:
    """As a worker whose machine has no memory left for one bundle."""
    if evidence.node == DEADLY:
        os.kill(os.getpid(), signal.SIGKILL)
    return read_and_judge(Lake.open(lake_url), evidence, now_ns)


def test_processes_find_what_one_finds(lake: Lake, tmp_path: Path) -> None:
    other = Lake.open(str(tmp_path / "other"))
    for place in (lake, other):
        for node in "abcd":
            put_bundle(place, node)
        put_bundle(place, "e", content=b"no bundle")
    swept = sweep(lake, Processes(lake.url, 2))
    assert (swept.judged, swept.incidents, len(swept.broken)) == (5, 4, 1)
    sweep(other, lambda evidence, now_ns: (read_and_judge(other, one, now_ns) for one in evidence))
    assert verdicts_in(lake) == verdicts_in(other)


def test_a_bundle_that_kills_its_process_costs_no_other_its_verdict(
    lake: Lake, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for node in "abc":
        put_bundle(lake, node)
    deadly = put_bundle(lake, DEADLY)
    monkeypatch.setattr(sweep_processes, "_judge", judge_or_die)
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(Path(__file__).parent), str(Path(__file__).parents[2])])
    )
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "work"))
    (tmp_path / "work").mkdir()
    swept = sweep(lake, Processes(lake.url, 2))
    assert list((tmp_path / "work").iterdir()) == []
    assert list(swept.unread) == [deadly.path]
    assert "killed, twice" in swept.unread[deadly.path]
    assert sorted(row[1] for row in verdicts_in(lake)) == ["a", "b", "c"]


def test_processes_end_with_who_started_them(tmp_path: Path) -> None:
    """Also when that was killed and could tell nobody, and they wait for more."""
    lake = Lake.open(str(tmp_path / "lake"))
    put_bundle(lake, "a")
    script = tmp_path / "sweeping.py"
    script.write_text(
        textwrap.dedent(f"""
        import os, signal
        from necroscope.fleet.evidence import evidence_in
        from necroscope.fleet.lake import Lake
        from necroscope.fleet.sweep_processes import Processes
        if __name__ == "__main__":
            found = evidence_in(Lake.open({lake.url!r}))
            judged = Processes({lake.url!r}, 1)(found, 1_800_000_000_000_000_000)
            next(judged)
            os.kill(os.getpid(), signal.SIGKILL)
        """)
    )
    # Its children hold our pipe: the end of the file is the end of the last of them.
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    ended = subprocess.run(
        [sys.executable, str(script)], stdout=subprocess.PIPE, timeout=60, env=environment
    )
    assert ended.returncode == -signal.SIGKILL
