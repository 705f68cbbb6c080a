"""Evidence of a node that was taken over: its own process ends over it, and the collector goes
on.
"""

import threading
import time
from collections.abc import Callable
from pathlib import Path

import httpx
import pyarrow as pa
import pytest
from tests.integration.drawn_incident import drawn_incident, write
from tests.served_collector import served

from necroscope.cli.view import recording_of
from necroscope.fleet.bundle import pack
from necroscope.fleet.collector import evidence_child
from necroscope.fleet.collector.app import create_app
from necroscope.fleet.collector.evidence_child import RecordingOf
from necroscope.fleet.collector.evidence_routes import evidence_router
from necroscope.fleet.collector.metrics import resident_memory_bytes
from necroscope.fleet.lake import Lake
from necroscope.fleet.tokens import Grant, Tokens, digest_of
from necroscope.store.query import Store
from necroscope.views.web.app import ServedRecording

DAY = "2025-10-09"
ABORTS_ARROW = Path(__file__).parents[1] / "data/hostile/aborts_arrow.tar"
Ask = Callable[[RecordingOf], tuple[httpx.Response, float]]


def greedy(store: Store) -> ServedRecording:
    """Stands for evidence that makes whoever reads it take all memory there is."""
    recording = recording_of(store)
    recording.version = "".join(["x" * (64 << 20) for _ in range(64)])
    return recording


def endless(_store: Store) -> ServedRecording:
    """Stands for evidence that keeps whoever reads it busy forever."""
    while True:
        pass


@pytest.fixture
def bundle(tmp_path: Path) -> bytes:
    return pack(write(tmp_path / "evidence", drawn_incident()))


@pytest.fixture
def ask(tmp_path: Path, bundle: bytes) -> Ask:
    lake = Lake.open(str(tmp_path / "lake"))
    lake.put(f"bundles/cluster=eu-1/date={DAY}/gpu-17--0.bundle", bundle)
    tokens = Tokens({digest_of("read"): Grant("eu-1", "read")})

    def answer(opens: RecordingOf) -> tuple[httpx.Response, float]:
        """The answer, and the longest that `/healthz` took beside it."""
        with served(create_app(lake, tokens, routers=[evidence_router(opens)])) as client:
            client.headers["Authorization"] = "Bearer read"
            got: list[httpx.Response] = []
            address = f"/evidence/eu-1/{DAY}/gpu-17--0.bundle/api/recording"
            asking = threading.Thread(target=lambda: got.append(client.get(address, timeout=60)))
            asking.start()
            longest_s = 0.0
            while asking.is_alive():
                began_s = time.monotonic()
                assert client.get("/healthz").status_code == 200
                longest_s = max(longest_s, time.monotonic() - began_s)
                asking.join(0.05)
            return got[0], longest_s

    return answer


@pytest.mark.parametrize("opens", [greedy, endless])
def test_evidence_that_takes_too_much_is_refused_and_the_collector_stays_well(
    ask: Ask, opens: RecordingOf, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(evidence_child, "_OPENING_S", 15.0)
    before_bytes = resident_memory_bytes()
    answer, longest_s = ask(opens)
    assert answer.status_code == 503
    assert "more memory or time" in answer.json()["error"]
    assert longest_s < 1
    assert resident_memory_bytes() - before_bytes < 64 << 20


def test_evidence_that_ends_whoever_reads_it_ends_its_own_process(ask: Ask, tmp_path: Path) -> None:
    """Arrow 26 aborts the process on a footer whose size statistics lie; scripts/fuzz found it."""
    bundle = pa.compress(ABORTS_ARROW.read_bytes(), codec="zstd", asbytes=True)
    lake = Lake.open(str(tmp_path / "lake"))
    lake.put(f"bundles/cluster=eu-1/date={DAY}/gpu-17--0.bundle", bundle)
    answer, longest_s = ask(recording_of)
    assert answer.status_code in (422, 503)
    assert longest_s < 1


def test_other_evidence_is_answered(ask: Ask) -> None:
    answer, longest_s = ask(recording_of)
    assert answer.json()["node"] == "drawn-node"
    assert longest_s < 1
