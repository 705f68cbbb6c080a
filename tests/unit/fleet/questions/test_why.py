"""`fleet why` over a lake: the story of the zone that was only a proxy, and what must not win."""

from pathlib import Path

import pytest
from tests.fleet_lakes import UNIT, DrawnLake, draw_story, moment

from necroscope.errors import NecroscopeError, UsageError
from necroscope.fleet.ask import LakeQuestions
from necroscope.fleet.lake import Lake
from necroscope.fleet.questions.occurrences import Subject, about, read_occurrences
from necroscope.fleet.questions.why import WhyAnswer, why
from necroscope.model.span import Span

RESET = Subject("event", "nic_reset")
SPAN = Span(moment(0), moment(10))


def ask_why(lake: Lake, where: str | None = None, span: Span = SPAN) -> WhyAnswer:
    return why(LakeQuestions(lake, moment(10)), RESET, span, where)


def test_the_unit_is_named_and_the_zone_is_told_to_be_a_proxy(tmp_path: Path) -> None:
    answer = ask_why(draw_story(tmp_path).write()).as_json()
    assert answer["outcome"] == "separated"
    assert answer["leaders"][0]["name"] == f"unit_outcome {UNIT} is crash-loop"
    zone = answer["leaders"][1]
    assert (zone["name"], zone["relation"]) == ("zone is a", "proxy")
    assert "only seems to matter" in zone["words"]
    assert zone["first_only"]["affected"]
    cells = answer["leaders"][0]["table"]
    assert sum(cells.values()) == answer["nodes"] == 60
    assert cells["affected_with"] + cells["affected_without"] == answer["affected"]
    assert answer["times"] == 3 * answer["affected"]


def test_with_no_node_that_disagrees_it_cannot_be_separated_and_an_experiment_is_reported(
    tmp_path: Path,
) -> None:
    answer = ask_why(draw_story(tmp_path, disagree=0).write()).as_json()
    assert answer["outcome"] == "cannot separate"
    assert {each["text"] for each in answer["leaders"][0]["facts"]} == {
        f"unit_outcome {UNIT} is crash-loop",
        "config_file /etc/resolv.conf is hash-a",
    }
    assert any("undo that" in text for text in answer["experiments"])


def test_the_verdicts_decide_where_zone_and_unit_are_the_same_nodes(tmp_path: Path) -> None:
    drawn = draw_story(tmp_path, disagree=0)
    nodes = read_occurrences(LakeQuestions(drawn.write(), moment(10)), RESET, SPAN)
    for number, (_, node) in enumerate(nodes):
        drawn.incident(node, f"i{number}", "zombie-memcg-walk", 6)
    answer = ask_why(drawn.write("w2")).as_json()
    assert (answer["outcome"], answer["decided_by"]) == ("separated", "mechanism")
    assert answer["leaders"][0]["name"] == f"unit_outcome {UNIT} is crash-loop"
    assert "Decided by mechanism, not by counts: zone is a and 1 other fact" in answer["summary"]
    assert answer["mechanism"]["name"] == UNIT
    assert answer["leaders"][1]["relation"] == "no verdict names it"


def test_verdicts_of_other_events_and_chains_that_are_none_decide_nothing(tmp_path: Path) -> None:
    drawn = draw_story(tmp_path, disagree=0)
    nodes = read_occurrences(LakeQuestions(drawn.write(), moment(10)), RESET, SPAN)
    for number, (_, node) in enumerate(nodes):
        drawn.incident(node, f"i{number}", "vm-steal", 6, events='["oom_kill"]')
        drawn.incident(
            node, f"j{number}", "vm-steal", 6, origin_kind="host", origin_name="hypervisor",
            origin_chain='{"unit": 1}',
        )  # fmt: skip
    answer = ask_why(drawn.write("w2")).as_json()
    assert answer["outcome"] == "cannot separate"
    assert "name host hypervisor: no difference between the nodes is about it" in answer["notes"][0]


def test_a_fact_that_changed_only_after_the_event_is_no_cause(tmp_path: Path) -> None:
    """In the story every affected node's NIC says so afterwards: a perfect fit, and a
    consequence.
    """
    answer = ask_why(draw_story(tmp_path).write())
    names = [
        str(each) for leader in answer.decision.leaders for each in leader.candidate.predicates
    ]
    assert not [name for name in names if "eth0 state" in name]


def test_a_rollout_to_all_nodes_in_between_favours_nobody(tmp_path: Path) -> None:
    """All nodes get a new kernel on day 4; resets came on day 2. As of today all well nodes and all
    affected ones have it.
    """
    drawn = DrawnLake(tmp_path)
    for number in range(60):
        node = f"n{number:02d}"
        drawn.alive(node, range(10))
        drawn.fact(node, "kernel", "release", "5.4")
        drawn.fact(node, "kernel", "release", "6.1", day=4)
        drawn.fact(node, "label", "zone", "ab"[number % 2])
        drawn.fact(node, "unit_outcome", UNIT, "crash-loop" if number < 20 else "never-started")
        if number < 15:
            drawn.event(node, "nic_reset", 2)
    answer = ask_why(drawn.write())
    assert answer.decision.doubt is None
    first = answer.decision.first
    assert first is not None
    assert first.candidate.name == f"unit_outcome {UNIT} is crash-loop"
    assert not [each for each in answer.decision.leaders if "kernel" in each.candidate.name]


def test_what_was_done_about_earlier_resets_is_no_cause_of_later_ones(tmp_path: Path) -> None:
    """Interrupts were pinned on day 3 where resets had been on day 1; asked about is day 4 on."""
    drawn = draw_story(tmp_path)
    for number in range(60):
        drawn.fact(f"gpu-{number:03d}", "config_file", "/etc/default/irqbalance", "as shipped")
    for _, node in read_occurrences(LakeQuestions(drawn.write(), moment(10)), RESET, SPAN):
        drawn.event(node, "nic_reset", 1)
        drawn.fact(node, "config_file", "/etc/default/irqbalance", "pinned", day=3)
    answer = ask_why(drawn.write("w2"), span=Span(moment(4), moment(10)))
    assert answer.decision.first is not None
    assert UNIT in answer.decision.first.candidate.name
    assert not [each for each in answer.decision.leaders if "irqbalance" in each.name]


def test_a_damaged_file_of_facts_is_reported_and_no_traceback(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake = draw_story(tmp_path).write()
    for path in (tmp_path / "tables/facts").rglob("*.parquet"):
        path.write_bytes(path.read_bytes()[:-20])
    monkeypatch.setattr("necroscope.fleet.ask._BEFORE_NEXT_TRY_S", 0)
    with pytest.raises(NecroscopeError, match="cannot be read"):
        ask_why(lake)


def test_facts_that_came_only_after_the_first_event_are_used_and_said(tmp_path: Path) -> None:
    """The kernel's log reaches back before the recorder's start."""
    drawn = DrawnLake(tmp_path)
    for number in range(40):
        node = f"n{number:02d}"
        drawn.alive(node, range(10))
        drawn.fact(
            node, "unit_outcome", UNIT, "crash-loop" if number < 12 else "never-started", day=3
        )
        drawn.fact(node, "label", "zone", "ab"[number % 2], day=3)
        if number < 12:
            drawn.event(node, "nic_reset", 2)
    answer = ask_why(drawn.write())
    assert answer.decision.first is not None
    assert UNIT in answer.decision.first.candidate.name
    assert "12 affected nodes sent their first facts only after" in answer.notes[0]


def test_nodes_without_facts_are_left_out_and_said(tmp_path: Path) -> None:
    drawn = draw_story(tmp_path)
    drawn.alive("mute-1", range(10))
    drawn.event("mute-2", "nic_reset", 3)
    answer = ask_why(drawn.write())
    assert answer.decision.nodes == 60
    assert "2 of 62 nodes sent no facts and are left out, 1 affected" in answer.notes[0]


def test_nodes_that_were_silent_all_the_time_are_not_counted_as_well(tmp_path: Path) -> None:
    drawn = draw_story(tmp_path)
    for number in range(50):
        drawn.fact(f"gone-{number}", "unit_outcome", UNIT, "crash-loop")
    assert ask_why(drawn.write()).decision.nodes == 60


def test_only_chosen_nodes_are_compared(tmp_path: Path) -> None:
    answer = ask_why(draw_story(tmp_path).write(), where="zone=b or zone=c")
    assert answer.decision.nodes == 40
    with pytest.raises(UsageError, match="no node is chosen"):
        ask_why(Lake.open(str(tmp_path)), where="zone=x")


def test_an_event_that_nobody_had_lists_those_there_are(tmp_path: Path) -> None:
    drawn = draw_story(tmp_path)
    drawn.event("gpu-001", "oom_kill", 3)
    with pytest.raises(UsageError) as found:
        why(LakeQuestions(drawn.write(), moment(10)), Subject("event", "nic_rest"), SPAN)
    assert "nic_rest" in found.value.facts
    assert "nic_reset (" in found.value.hint
    assert "oom_kill (1 nodes)" in found.value.hint


def test_an_empty_time_says_where_the_events_are(tmp_path: Path) -> None:
    with pytest.raises(UsageError) as found:
        ask_why(draw_story(tmp_path).write(), span=Span(moment(50), moment(60)))
    assert "2026-04-03 to 2026-04-08" in found.value.hint


def test_an_empty_lake_says_how_to_fill_it(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="holds no events yet"):
        ask_why(Lake.open(str(tmp_path)))


def test_all_nodes_affected_leaves_none_to_compare_with(tmp_path: Path) -> None:
    answer = ask_why(draw_story(tmp_path).write(), where="event=nic_reset").as_json()
    assert answer["doubt"] == "every node is affected"
    assert answer["leaders"] == []


def test_a_cause_is_asked_about_by_its_newest_verdicts(tmp_path: Path) -> None:
    drawn = draw_story(tmp_path)
    drawn.incident("gpu-000", "i1", "unknown", 3, analysed_ns=1)
    drawn.incident("gpu-000", "i1", "zombie-memcg-walk", 3, analysed_ns=2)
    questions = LakeQuestions(drawn.write(), moment(10))
    assert why(questions, Subject("cause", "zombie-memcg-walk"), SPAN).decision.affected == 1
    with pytest.raises(UsageError, match="no node had the cause 'unknown'"):
        why(questions, Subject("cause", "unknown"), SPAN)


def test_one_thing_is_asked_about_at_a_time() -> None:
    for words in ((None, None), ("nic_reset", "vm-steal")):
        with pytest.raises(UsageError, match="one event or one cause"):
            about(*words)


def test_clusters_are_places_too(tmp_path: Path) -> None:
    drawn = DrawnLake(tmp_path)
    for cluster in ("eu", "us"):
        for number in range(30):
            drawn.alive(f"n{number}", range(10), cluster)
            drawn.fact(f"n{number}", "sysctl", "noise", str(number % 3), cluster=cluster)
            if cluster == "eu" and number < 25:
                drawn.event(f"n{number}", "nic_reset", 3, cluster)
    answer = ask_why(drawn.write())
    assert answer.decision.nodes == 60
    assert answer.decision.doubt is not None
