"""A verdict that was made before all was known of its origin is completed when the rows come, once,
under the same id, by whoever keeps the ledger and by whoever opens the recording later.
"""

import json
from pathlib import Path

import pytest
from tests.drawn_node import DrawnNode, drawn_node
from tests.unit.verdicts.test_follower import Following

from necroscope.analysis import incidents
from necroscope.analysis.report import Origin
from necroscope.store.query import Store
from necroscope.verdicts.reading import read_report

UNIT = "ecs.service"
IDS = [f"{digit}{'ab' * 31}a" for digit in "0123456789"]
WALK = f"""
    core 0:  {"." * 120}
    core 1:  {"." * 15}{"k" * 6}{"." * 99}
    k: system  kubelet[1872]  /system.slice/kubelet.service  Read > ksys_read, vfs_read, memcg_stat_show, mem_cgroup_iter
"""
CONTAINER = Origin("container", "ecs-agent", (("image", "amazon-ecs-agent:1.8"),))
MAKER = Origin(
    "unit",
    UNIT,
    (("container", "ecs-agent"), ("image", "amazon-ecs-agent:1.8"), ("file", "/lib/ecs.service")),
)


def looping_node(made_at_s: float | None) -> DrawnNode:
    """A container that is re-created ten times before somebody walks over what it left."""
    node = drawn_node(WALK)
    for second in range(0, 120, 10):
        node.zombies(second, 60_000 + second)
    for number, one in enumerate(IDS):
        own = {"container": one, "name": "ecs-agent", "image": "amazon-ecs-agent:1.8"}
        for offset, kind, more in ((0, "start", {}), (0.2, "die", {"exit_code": 5})):
            fields = json.dumps(own | more)
            node.event(number + offset, f"container_{kind}", fields=fields, by_kernel=False)
        for offset, action in ((0, "made"), (0.2, "removed")):
            values = {"hierarchy": 8, "cgroup_id": 100 + number, "path": f"/docker/{one}"}
            node.add("cgroup_ledger", number + offset, action=action, **values)
    node.add("units", 1, unit=UNIT, fragment="/lib/ecs.service")
    if made_at_s is not None:
        fields = json.dumps({"name": "ecs-agent", "unit": UNIT, "how": "it is connected"})
        node.event(made_at_s, "container_made", fields=fields, by_kernel=False)
    return node


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    made: list[object] = []
    real = incidents.decide
    monkeypatch.setattr(incidents, "decide", lambda *words: made.append(1) or real(*words))
    return made


def test_the_maker_that_is_found_later_completes_the_verdict_once(
    tmp_path: Path, judged: list[object]
) -> None:
    changes = Following(tmp_path / "r", looping_node(made_at_s=45)).until(117).changes
    assert [(state, one.incident.verdict.origin) for _, state, one in changes] == [
        ("closed", CONTAINER),
        ("closed", MAKER),
    ]
    assert changes[0][2].id == changes[1][2].id
    assert changes[1][2].revision > changes[0][2].revision
    assert 45 <= changes[1][0] <= 54
    assert len(judged) == 2


def test_without_news_of_its_origin_nothing_is_judged_again(
    tmp_path: Path, judged: list[object]
) -> None:
    node = looping_node(made_at_s=None)
    for second in range(30, 110, 10):
        node.event(second, "unit_restart", "another.service restarted", fields="{}")
        node.add("units", second, unit="another.service", fragment="/lib/another.service")
    assert len(Following(tmp_path / "r", node).until(117).changes) == 1
    assert len(judged) == 1


def test_what_came_after_the_last_look_completes_it_when_the_recording_is_opened(
    tmp_path: Path, judged: list[object]
) -> None:
    following = Following(tmp_path / "r", looping_node(made_at_s=None)).until(60)
    (row,) = [
        one for one in looping_node(made_at_s=59.5)._rows("events") if "container_made" in one
    ]
    following.recording.late("events", row)
    store = Store.open(tmp_path / "r")
    judged.clear()
    (incident,) = read_report(store).wrong
    assert incident.verdict.origin == MAKER
    assert [incident.id] == [one.id for one in following.writer.ledger.incidents()]
    assert len(judged) == 1


def test_one_that_is_complete_is_not_judged_when_the_recording_is_opened(
    tmp_path: Path, judged: list[object]
) -> None:
    following = Following(tmp_path / "r", looping_node(made_at_s=12)).until(60)
    following.look(61, is_live=False)
    judged.clear()
    (incident,) = read_report(Store.open(tmp_path / "r")).wrong
    assert incident.verdict.origin == MAKER
    assert not judged
