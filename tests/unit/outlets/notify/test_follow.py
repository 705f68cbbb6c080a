"""The whole path over a growing recording: pinned, judged by the real analysis, told once, also
across restarts and outages.
"""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.drawn_node import at, drawn_node
from tests.growing_recording import GrowingRecording
from tests.kubernetes_api import TOKEN, KubernetesApi
from tests.receiving_server import ReceivingServer

from necroscope.errors import NecroscopeError
from necroscope.fleet.request import Endpoint
from necroscope.outlets.notify.follow import Channel, Follower, Watch
from necroscope.outlets.notify.judge import judge, judgement_as_json
from necroscope.outlets.notify.judged import Judged, Judgement
from necroscope.outlets.notify.kubernetes import Kubernetes
from necroscope.outlets.notify.new_incidents import NewIncidents
from necroscope.outlets.notify.webhook import Webhook

MakeIncident = Callable[..., Judged]
NODE = f"""
    core 0:  {"." * 90}
    core 1:  {"." * 10}{"x" * 20}{"." * 60}
    x: system  tool[44]  /  main > odd_driver_loop
"""
SECOND = 1_000_000_000


class Follow:
    """A follower whose clock and judge the test holds."""

    def __init__(self, directory: Path, *channels: Channel) -> None:
        self.directory = directory
        self.said: list[str] = []
        self.judged: list[int] = []
        self.now_s = 0.0
        self.judgement: Judgement | None = None
        self._channels = channels
        self.start()

    def start(self) -> None:
        watch = Watch(
            self.directory,
            self._judge,
            NewIncidents(at(0)),
            self.said.append,
            lambda: round(self.now_s * SECOND),
        )
        notebook = self.directory / ".notify.json"
        self.follower = Follower(
            watch, self._channels, notebook, self.said.append, lambda: 1.0, 600 * SECOND
        )

    def at(self, second: float) -> float:
        """A turn; returns in how many seconds the next is due."""
        self.now_s = second
        return (self.follower.turn(at(second)) - at(second)) / SECOND

    def _judge(self, directory: Path, from_ns: int) -> Judgement:
        self.judged.append(from_ns)
        if self.judgement is not None:
            return self.judgement
        content = json.loads(json.dumps(judgement_as_json(directory, from_ns, at(self.now_s))))
        return Judgement(
            content["end_ns"],
            content["is_live"],
            content["labels"],
            tuple(map(Judged.from_json, content["incidents"])),
        )


@pytest.fixture
def recording(tmp_path: Path) -> GrowingRecording:
    return GrowingRecording(tmp_path / "recording", drawn_node(NODE), {"zone": "a"})


def test_a_held_core_is_told_once_to_the_webhook(
    recording: GrowingRecording, receiver: ReceivingServer
) -> None:
    follow = Follow(
        recording.grow(8).directory, Webhook(Endpoint.parse(receiver.url), None, {"zone": "a"})
    )
    assert follow.at(8) == 5
    assert follow.judged == []
    recording.grow(20).pin(-280, 140)
    follow.at(20)
    assert receiver.received == []
    recording.grow(60)
    for second in (40, 60, 75):
        follow.at(second)
    (request,) = receiver.received
    told = request.content["incident"]
    assert (told["core"], told["mode"], told["verdict"]["culprit"]["comm"]) == (1, "system", "tool")
    assert told["verdict"]["title"]
    follow.start()
    recording.grow(80)
    follow.at(90)
    assert len(receiver.received) == 1


def test_it_is_kept_while_the_receiver_is_away_and_delivered_once_it_is_back(
    recording: GrowingRecording, receiver: ReceivingServer
) -> None:
    receiver.replies += [(503, {"Retry-After": "30"}, b"")] * 2
    follow = Follow(
        recording.grow(60).pin(-280, 140).directory, Webhook(Endpoint.parse(receiver.url), None, {})
    )
    assert follow.at(60) == 5
    assert follow.follower.undelivered == 1
    follow.at(65)
    assert len(receiver.received) == 1
    follow.start()
    follow.at(66)
    assert len(receiver.received) == 2
    follow.at(100)
    follow.at(200)
    assert follow.follower.undelivered == 0
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
    webhook = Webhook(Endpoint.parse(f"{receiver.url}/hook"), None, {})
    follow = Follow(recording.grow(8).directory, webhook, cluster)
    follow.at(8)
    assert api.condition("node-a")["status"] == "False"
    recording.grow(60).pin(-280, 140)
    follow.at(60)
    assert api.condition("node-a")["status"] == "True"
    assert len(api.events) == 1
    assert follow.follower.undelivered == 1
    follow.at(700)
    assert api.condition("node-a")["status"] == "False"


def test_a_failing_condition_is_tried_again_with_pauses(
    recording: GrowingRecording, receiver: ReceivingServer, tmp_path: Path
) -> None:
    receiver.reply = lambda _: (503, {}, b"")
    (tmp_path / "token").write_text(TOKEN)
    follow = Follow(
        recording.grow(8).directory, Kubernetes.in_pod("node-a", receiver.url, tmp_path)
    )
    for second in (1, 1.5, 2, 2.5, 3, 3.5, 4, 4.5):
        follow.at(second)
    assert len(receiver.received) == 3


def test_the_analysis_rests_twenty_times_as_long_as_it_takes(
    recording: GrowingRecording, receiver: ReceivingServer
) -> None:
    follow = Follow(
        recording.grow(60).pin(-280, 140).directory, Webhook(Endpoint.parse(receiver.url), None, {})
    )
    follow.judgement = Judgement(at(10), True, {}, ())
    for second in (60, 62, 64, 69):
        follow.at(second)
    assert len(follow.judged) == 1
    follow.at(70)
    assert len(follow.judged) == 2
    watch = follow.follower._watch
    ticks = iter([200, 203, 204])  # it took three seconds
    watch._monotonic_ns = lambda: next(ticks) * SECOND
    watch.look(at(200))
    assert watch._not_before_ns == 263 * SECOND


def test_an_analysis_that_fails_is_said_once_and_tried_again(
    recording: GrowingRecording, receiver: ReceivingServer
) -> None:
    follow = Follow(
        recording.grow(60).pin(-280, 140).directory, Webhook(Endpoint.parse(receiver.url), None, {})
    )

    def fail(*_: object) -> Judgement:
        raise NecroscopeError("the analysis failed: drawn")

    follow.follower._watch._judge = fail
    for second in (60, 80, 100):
        follow.at(second)
    assert follow.said == ["the analysis failed: drawn"]


def test_a_damaged_notebook_is_begun_anew(
    recording: GrowingRecording, receiver: ReceivingServer
) -> None:
    notebook = recording.grow(8).directory / ".notify.json"
    for content in (b"", b"garbage", b'{"crc32": "00000000",\n"content": {}}\n'):
        notebook.write_bytes(content)
        follow = Follow(recording.directory, Webhook(Endpoint.parse(receiver.url), None, {}))
        assert "is begun anew" in follow.said[0]
        follow.at(8)


def test_damaged_pins_are_no_pins(recording: GrowingRecording, receiver: ReceivingServer) -> None:
    (recording.grow(60).directory / "pins.json").write_text("garbage")
    follow = Follow(recording.directory, Webhook(Endpoint.parse(receiver.url), None, {}))
    follow.at(60)
    assert follow.judged == []


def test_the_analysis_runs_in_a_process_of_its_own(recording: GrowingRecording) -> None:
    found = judge(recording.grow(60).seal().directory, at(0))
    assert [(one.core, one.node) for one in found.incidents] == [(1, "drawn-node")]
    assert found.labels == {"zone": "a"}
    assert not found.is_live
    with pytest.raises(NecroscopeError, match="the analysis failed: there is no directory"):
        judge(recording.directory / "nowhere", at(0))
