"""One container daemon: what a look that fails costs, and what a container costs that cannot be
inspected.
"""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.fake_daemon import Answer, FakeDaemon, http, unix_daemon

from necroscope.errors import SourceUnavailable
from necroscope.model.units import NS_PER_S
from necroscope.sources.containers import daemon as daemon_module
from necroscope.sources.containers.daemon import ContainerDaemon, DaemonLook

START_NS = 1_700_000_000 * NS_PER_S
NAMES = [f"{number:02}" * 32 for number in range(8)]

Answers = dict[str, bytes | int]


@pytest.fixture
def answers() -> Answers:
    return (
        {"/events": b""}
        | {"/containers/json": listed(NAMES)}
        | {inspect(name): state(name) for name in NAMES}
    )


@pytest.fixture
def docker(tmp_path: Path, answers: Answers) -> Iterator[FakeDaemon]:
    with unix_daemon(tmp_path / "run/docker.sock", hanging(http(answers), answers)) as daemon:
        yield daemon


@pytest.fixture
def source(tmp_path: Path, docker: FakeDaemon) -> ContainerDaemon:
    return ContainerDaemon(tmp_path, "docker", "/run/docker.sock", timeout_s=0.2)


def hanging(answer: Answer, answers: Answers) -> Answer:
    """A target whose answer is to be 0 is never answered."""

    def reply(request: bytes) -> bytes | None:
        target = request.split(b" ")[1].decode().partition("?")[0]
        return None if answers.get(target) == 0 else answer(request)

    return reply


def inspect(name: str) -> str:
    return f"/containers/{name}/json"


def listed(names: list[str], status: str = "running") -> bytes:
    return json.dumps(
        [{"Id": name, "Names": [f"/{name[:2]}"], "State": status} for name in names]
    ).encode()


def state(name: str) -> bytes:
    return json.dumps({"Id": name, "Name": f"/{name[:2]}", "State": {"Status": "running"}}).encode()


def death(name: str, second: float) -> bytes:
    actor = {"ID": name, "Attributes": {"name": name[:2], "exitCode": "1"}}
    return (
        json.dumps(
            {"Action": "die", "Actor": actor, "timeNano": START_NS + round(second * NS_PER_S)}
        ).encode()
        + b"\n"
    )


def look(source: ContainerDaemon, second: int) -> DaemonLook:
    return source.look(START_NS + second * NS_PER_S)


def dead(found: DaemonLook) -> list[str]:
    return [event.container for event in found.events]


def inspected(found: DaemonLook) -> list[str | None]:
    return [state.container for state in found.states]


@pytest.mark.parametrize("failure", [0, 500])
@pytest.mark.parametrize("target", ["/events", "/containers/json"])
def test_what_happened_while_a_look_failed_is_reported_by_the_next(
    source: ContainerDaemon, answers: Answers, target: str, failure: int
) -> None:
    look(source, 0)
    working = answers[target]
    answers[target] = failure
    with pytest.raises(SourceUnavailable):
        look(source, 10)
    answers |= {target: working, "/events": death(NAMES[0], 5)}
    assert dead(look(source, 20)) == [NAMES[0]]
    assert dead(look(source, 30)) == []


@pytest.mark.parametrize("failure", [0, 500, b"{}"])
def test_a_container_that_cannot_be_inspected_hides_no_other(
    source: ContainerDaemon, answers: Answers, failure: bytes | int
) -> None:
    answers[inspect(NAMES[2])] = failure
    first = look(source, 0)
    assert inspected(first) == NAMES[:2] + NAMES[3:]
    assert [cause.partition(": ")[0] for cause in first.causes] == ["container 02"]
    answers["/events"] = death(NAMES[2], 5) + death(NAMES[5], 5)
    second = look(source, 10)
    assert (dead(second), inspected(second), second.causes) == (
        [NAMES[2], NAMES[5]],
        [NAMES[5]],
        first.causes,
    )
    answers[inspect(NAMES[2])] = state(NAMES[2])
    third = look(source, 20)
    assert (dead(third), inspected(third), third.causes) == ([], [NAMES[2]], [])


def test_of_many_that_cannot_be_inspected_a_few_are_asked_about_at_a_time(
    source: ContainerDaemon, answers: Answers, docker: FakeDaemon, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(daemon_module, "_STUCK_LIMIT", 2)
    answers |= {inspect(name): 500 for name in NAMES[:5]}
    first = look(source, 0)
    assert (inspected(first), len(docker.heard)) == ([], 1 + 2), "the list, and two that failed"
    seen = [look(source, 10 * turn) for turn in range(1, 4)]
    assert sorted(name for found in seen for name in inspected(found) if name) == NAMES[5:]
    assert seen[-1].causes == [*first.causes, "3 containers more"]
    answers["/events"] = death(NAMES[6], 35)
    assert inspected(look(source, 40)) == [NAMES[6]], "before those that were stuck the last time"
    answers |= {inspect(name): state(name) for name in NAMES[:5]}
    last = look(source, 50)
    assert (sorted(name for name in inspected(last) if name), last.causes) == (NAMES[:5], [])


def test_one_that_is_removed_while_it_is_stuck_is_trouble_no_more(
    source: ContainerDaemon, answers: Answers
) -> None:
    answers[inspect(NAMES[2])] = 500
    assert look(source, 0).causes
    answers["/containers/json"] = listed(NAMES[:2])
    assert look(source, 10).causes == []


def test_after_a_long_silence_the_last_minutes_are_asked_for(
    source: ContainerDaemon, answers: Answers, docker: FakeDaemon
) -> None:
    look(source, 0)
    answers["/containers/json"] = 500
    with pytest.raises(SourceUnavailable):
        look(source, 3600)
    answers["/containers/json"] = listed(NAMES)
    look(source, 7200)
    (asked,) = [request for request in docker.heard if b"/events" in request]
    assert b"since=%d." % (1_700_000_000 + 7200 - 300 - 1) in asked
