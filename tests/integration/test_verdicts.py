"""Real incidents, recorded again as they happen: how soon each is with the webhook, the metrics and
the node's condition, pinned or not.
"""

from pathlib import Path

import pytest
from benchmarks.replayed_recording import NS, KeptRecording, ReplayedRecording
from tests.kubernetes_api import TOKEN, KubernetesApi
from tests.receiving_server import Received, receiving_server

from necroscope.fleet.request import Endpoint
from necroscope.outlets.notify.kubernetes import Kubernetes
from necroscope.outlets.notify.notifier import Notifier
from necroscope.outlets.notify.webhook import Webhook
from necroscope.store.query import Store
from necroscope.verdicts.keeper import Keeper
from necroscope.verdicts.ledger import Ledger
from necroscope.verdicts.ledger_writer import is_kept
from necroscope.views.prometheus.verdict_figures import VerdictFigures

LAB = Path(__file__).parents[1] / "data" / "lab"
START_NS = 1_900_000_000 * NS
FLUSH_S = 3
# None of the first four triggers anything in the recorder.
INCIDENTS = (
    "cpu-quota-throttle",
    "blocked-io",
    "userspace-hog",
    "periodic-job",
    "rt-hog",
    "zombie-memcg-walk",
)


def kept_recording(name: str) -> KeptRecording:
    return KeptRecording(next((LAB / name).rglob("recording.json")).parent)


class Outlets:
    """Each looks once per second, by the second of the replay, and notes when it first knew."""

    def __init__(self, directory: Path, url: str, credentials: Path) -> None:
        webhook = Webhook(Endpoint.parse(f"{url}/hook"), None, "node-a", {})
        cluster = Kubernetes.in_pod("node-a", url, credentials)
        notebook = directory / ".notify.json"
        self.notifier = Notifier(
            Ledger.open(directory), [webhook, cluster], notebook, lambda _: None, lambda: 1.0, NS
        )
        self.ledger = Ledger.open(directory)
        self.figures = VerdictFigures([])
        self.metrics: dict[str, float] = {}

    def look(self, second: float) -> None:
        self.notifier.turn(START_NS + round(second * NS))
        for entry in self.ledger.refresh():
            self.figures.take(entry)
            self.metrics.setdefault(entry.incident.verdict.cause, second)


@pytest.mark.parametrize("name", INCIDENTS)
def test_an_incident_is_everywhere_within_15_s_of_its_end_or_30_s_of_its_start_as_diagnose_has_it(
    name: str, tmp_path: Path
) -> None:
    kept = kept_recording(name)
    truth = next(one for one in kept.truth if one.cause == name)
    recording = ReplayedRecording(tmp_path / "r")
    recording.begin(kept, START_NS)
    (tmp_path / "token").write_text(TOKEN)
    api = KubernetesApi("node-a")
    hooked: dict[str, float] = {}
    second = 0.0

    def reply(request: Received) -> tuple[int, dict[str, str], bytes]:
        if request.path != "/hook":
            return api(request)
        hooked.setdefault(request.content["incident"]["verdict"]["cause"], second)
        return 200, {}, b""

    conditioned: float | None = None
    with receiving_server() as server:
        server.reply = reply
        keeper = Keeper(recording.directory, lambda _: None)
        outlets = Outlets(recording.directory, server.url, tmp_path)
        for tick in range(1, round(kept.seconds) + 20):
            second = float(tick)
            if tick % FLUSH_S == 0:
                recording.grow(START_NS + tick * NS)
            keeper.turn(is_live=True)
            outlets.look(second)
            if conditioned is None and api.condition("node-a")["status"] == "True":
                conditioned = second
        keeper.turn(is_live=False)
        keeper.close()
    found = [entry.incident for entry in Ledger.open(recording.directory).incidents()]
    whole = [(one.core, one.cause) for one in kept.truth]
    assert [(one.core, one.verdict.cause) for one in found] == whole
    assert conditioned is not None
    allowed_s = min(truth.from_s + 30, truth.to_s + 15)
    assert max(hooked[name], outlets.metrics[name], conditioned) <= allowed_s


def test_a_recorder_keeps_a_ledger_and_ends_it_with_itself(record):
    recorder = record("--verdicts", "on")
    recorder.wait_for_rows("cores", 10)
    code, _, said = recorder.stop()
    assert (code, said) == (0, "")
    ledger = Ledger.open(recorder.directory)
    first_ns, last_ns = Store.open(recorder.directory).span()
    assert ledger.covers(first_ns)
    assert ledger.judged[1] == last_ns
    assert not is_kept(recorder.directory)
