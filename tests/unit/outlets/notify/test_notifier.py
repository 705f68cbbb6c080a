"""The whole path over a growing recording: judged by the process that keeps the ledger, announced
once, also across restarts and outages.
"""

from pathlib import Path

import pytest
from tests.drawn_node import at, drawn_node
from tests.growing_recording import GrowingRecording
from tests.kubernetes_api import TOKEN, KubernetesApi
from tests.receiving_server import ReceivingServer

from necroscope.fleet.request import Endpoint
from necroscope.outlets.notify.kubernetes import Kubernetes
from necroscope.outlets.notify.notifier import Channel, Notifier
from necroscope.outlets.notify.webhook import Webhook
from necroscope.verdicts.keeper import Keeper
from necroscope.verdicts.ledger import Ledger

NODE = f"""
    core 0:  {"." * 90}
    core 1:  {"." * 10}{"x" * 20}{"." * 60}
    x: system  tool[44]  /  main > odd_driver_loop
"""
SECOND = 1_000_000_000
# What is between the recording's time and the clock's.
AHEAD_S = 7200


class Follow:
    """A recording, the process that keeps its ledger, and a notifier, by a clock of the test."""

    def __init__(self, recording: GrowingRecording, *channels: Channel) -> None:
        self.recording = recording
        self.said: list[str] = []
        self._second = 0
        self._channels = channels
        self.keeper = Keeper(recording.directory, lambda _: None)
        self.start()

    def start(self) -> None:
        directory = self.recording.directory
        notebook = directory / ".notify.json"
        self.notifier = Notifier(
            Ledger.open(directory),
            self._channels,
            notebook,
            self.said.append,
            lambda: 1.0,
            600 * SECOND,
        )

    def until(self, second: int) -> None:
        while self._second < second:
            self._second = min(second, self._second + 3)
            self.recording.grow(self._second)
            self.keeper.turn(is_live=True)
            self.at(self._second)

    def at(self, second: float) -> float:
        """A turn; returns in how many seconds the next is due."""
        now_ns = at(second + AHEAD_S)
        return (self.notifier.turn(now_ns) - now_ns) / SECOND


@pytest.fixture
def recording(tmp_path: Path) -> GrowingRecording:
    return GrowingRecording(tmp_path / "recording", drawn_node(NODE), {"zone": "a"})


def webhook(url: str) -> Webhook:
    return Webhook(Endpoint.parse(url), None, "node-a", {"zone": "a"})


def test_a_held_core_is_announced_while_it_goes_on_and_when_it_is_over(
    recording: GrowingRecording, receiver: ReceivingServer
) -> None:
    follow = Follow(recording, webhook(receiver.url))
    follow.until(9)
    assert receiver.received == []
    follow.until(27)
    (opened,) = receiver.received
    assert opened.content["state"] == "open"
    follow.until(60)
    _, closed = receiver.received
    found = closed.content["incident"]
    assert (found["core"], found["mode"], found["verdict"]["culprit"]["comm"]) == (
        1,
        "system",
        "tool",
    )
    assert found["verdict"]["title"]
    assert found["id"] == opened.content["incident"]["id"]
    assert closed.content["state"] == "closed"
    follow.start()
    follow.until(80)
    assert len(receiver.received) == 2


def test_it_is_kept_while_the_receiver_is_away_and_delivered_once_it_is_back(
    recording: GrowingRecording, receiver: ReceivingServer
) -> None:
    follow = Follow(recording.grow(60), webhook(receiver.url))
    follow.keeper.turn(is_live=True)
    receiver.replies += [(503, {"Retry-After": "30"}, b"")] * 2
    assert follow.at(60) == 1
    assert follow.notifier.undelivered == 1
    follow.at(65)
    assert len(receiver.received) == 1
    follow.start()
    follow.at(66)
    assert len(receiver.received) == 2
    follow.at(100)
    follow.at(200)
    assert follow.notifier.undelivered == 0
    assert len({request.headers["X-Necroscope-Delivery"] for request in receiver.received}) == 1
    assert len(receiver.received) == 3
    assert any("answered 503" in text for text in follow.said)


def test_kubernetes_gets_condition_and_event_and_one_channel_does_not_wait_for_another(
    recording: GrowingRecording, receiver: ReceivingServer, tmp_path: Path
) -> None:
    api = KubernetesApi("node-a")
    receiver.reply = lambda request: (500, {}, b"") if request.path == "/hook" else api(request)
    (tmp_path / "token").write_text(TOKEN)
    cluster = Kubernetes.in_pod("node-a", receiver.url, tmp_path)
    follow = Follow(recording, webhook(f"{receiver.url}/hook"), cluster)
    follow.until(9)
    assert api.condition("node-a")["status"] == "False"
    follow.until(27)
    assert api.condition("node-a")["status"] == "True"
    assert len(api.events) == 1
    follow.until(60)
    assert len(api.events) == 1
    assert follow.notifier.undelivered == 2
    follow.at(600)
    assert api.condition("node-a")["status"] == "True"
    follow.at(700)
    assert api.condition("node-a")["status"] == "False"


def test_the_condition_stays_while_an_incident_goes_on_and_the_ledger_is_kept(
    recording: GrowingRecording, receiver: ReceivingServer, tmp_path: Path
) -> None:
    api = KubernetesApi("node-a")
    receiver.reply = api
    (tmp_path / "token").write_text(TOKEN)
    follow = Follow(recording, Kubernetes.in_pod("node-a", receiver.url, tmp_path))
    follow.until(27)
    for second in (500, 1000, 1500):
        follow.at(second)
    assert api.condition("node-a")["status"] == "True"
    follow.keeper.close()
    follow.at(2200)
    assert api.condition("node-a")["status"] == "False"


def test_while_an_incident_goes_on_the_notebook_is_written_once_per_minute(
    recording: GrowingRecording,
) -> None:
    follow = Follow(recording)
    follow.until(27)
    notebook, written = recording.directory / ".notify.json", set()
    for second in range(30, 150):
        follow.at(second)
        written.add(notebook.read_bytes())
    assert 2 <= len(written) <= 4


def test_a_failing_condition_is_tried_again_with_pauses(
    recording: GrowingRecording, receiver: ReceivingServer, tmp_path: Path
) -> None:
    receiver.reply = lambda _: (503, {}, b"")
    (tmp_path / "token").write_text(TOKEN)
    follow = Follow(recording.grow(8), Kubernetes.in_pod("node-a", receiver.url, tmp_path))
    for second in (1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5):
        follow.at(second)
    assert len(receiver.received) == 3


def test_a_damaged_notebook_is_replaced(
    recording: GrowingRecording, receiver: ReceivingServer
) -> None:
    notebook = recording.grow(8).directory / ".notify.json"
    follow = Follow(recording, webhook(receiver.url))
    for content in (b"", b"garbage", b'{"crc32": "00000000",\n"content": {}}\n'):
        follow.said.clear()
        notebook.write_bytes(content)
        follow.start()
        assert "is replaced" in follow.said[0]
        follow.at(8)
