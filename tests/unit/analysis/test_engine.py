"""From a drawn node to its report: what is an incident, what is unknown, what a poor recording
says.
"""

import pytest
from tests.drawn_node import DrawnNode, at, drawn_node

from necroscope.analysis.causes import all_causes
from necroscope.analysis.engine import diagnose
from necroscope.errors import CorruptData, RecordingError
from necroscope.model.reading import Gap

HELD = """
    core 0:  ..............................
    core 1:  ..........xxxxxxxx............
    x: system  tool[44]  /user.slice/tool.service  main > ksys_ioctl, odd_driver_ioctl, odd_driver_loop
"""


def held() -> DrawnNode:
    return drawn_node(HELD)


def test_a_quiet_node_has_no_incident() -> None:
    report = diagnose(drawn_node("core 0: ................\ncore 1: ................"))
    assert not report.incidents
    assert report.as_json()["incidents"] == []


def test_an_empty_recording_is_no_error() -> None:
    node = drawn_node("")
    node.info = lambda: type(DrawnNode.info(node))(1, "n", None, None, None, {})  # type: ignore[method-assign]
    assert diagnose(node).notes == ("nothing is recorded yet",)


def test_unknown_still_names_core_mode_process_and_path() -> None:
    (incident,) = diagnose(held()).incidents
    verdict = incident.verdict
    assert (incident.core, incident.mode, verdict.cause) == (1, "system", "unknown")
    assert verdict.confidence < 0.5
    assert verdict.culprit is not None
    assert (verdict.culprit.comm, verdict.culprit.pid, verdict.culprit.unit) == (
        "tool",
        44,
        "tool.service",
    )
    assert verdict.culprit.path[-1] == "odd_driver_loop"
    assert any(
        item.text.startswith("100% of the time, 0% before") and "odd_driver_loop" in item.text
        for item in verdict.evidence
    )


def test_a_task_that_ran_all_along_is_not_the_culprit() -> None:
    node = drawn_node("""
        core 0:  ................................
        core 1:  uuuuuuuuuuuuuuuuxxxxxxxxuuuuuuuu
        u: user  trainer[7]  /  main, step
        x: system  trainer[7]  /  main, step > odd_entry, odd_trap
        x: system  tool[44]  /  main > ksys_ioctl, odd_loop
        x: system  trainer[7]  /  main, step > odd_entry, odd_trap
        x: system  tool[44]  /  main > ksys_ioctl, odd_loop
        """)
    (incident,) = diagnose(node).incidents
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "tool"


def test_softirqs_that_proc_stat_books_as_system_are_seen_in_samples() -> None:
    node = drawn_node(
        HELD.replace(
            "ksys_ioctl, odd_driver_ioctl", "asm_common_interrupt, handle_softirqs, net_rx_action"
        )
    )
    (incident,) = diagnose(node).incidents
    assert incident.mode == "softirq"


def test_a_moment_can_be_asked_about() -> None:
    node = drawn_node(
        "core 0: ....................\ncore 1: .....uuuuuuuuuu.....\nu: user  train[9]  /  main,"
        " step"
    )
    assert not diagnose(node).incidents
    (incident,) = diagnose(node, at_ns=at(9)).incidents
    assert (incident.core, incident.mode) == (1, "user")
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "train"


def test_a_stretch_of_the_recording_can_be_asked_about() -> None:
    assert not diagnose(held(), span=(at(0), at(9))).incidents
    assert diagnose(held(), span=(at(0), at(20))).incidents


def test_samples_alone_show_the_core_and_say_what_is_missing() -> None:
    report = diagnose(held().forget("cores", "softirqs"))
    (incident,) = report.incidents
    assert (incident.core, incident.mode) == (1, "system")
    assert any("time of cores" in note and "necroscope record" in note for note in report.notes)
    assert any("estimated from samples" in item.text for item in incident.verdict.against)


def test_without_samples_the_mode_is_still_told() -> None:
    report = diagnose(held().forget("samples", "stacks", "frames"))
    (incident,) = report.incidents
    assert (incident.core, incident.mode, incident.verdict.culprit) == (1, "system", None)
    assert any("CAP_PERFMON" in note for note in report.notes)


def test_a_gap_over_the_incident_lowers_the_confidence() -> None:
    node = held()
    node.added["gaps"] = [Gap("*", at(11), at(14), "the disk was full").row()]
    assert (
        diagnose(node).incidents[0].verdict.confidence
        < diagnose(held()).incidents[0].verdict.confidence
    )
    assert any(
        "the disk was full" in item.text for item in diagnose(node).incidents[0].verdict.against
    )


def test_a_recording_of_a_few_seconds_says_so() -> None:
    assert any("only 4 s long" in note for note in diagnose(drawn_node("core 0: ....")).notes)


def test_other_core_numbers_are_kept() -> None:
    node = drawn_node(HELD.replace("core 0", "core 17").replace("core 1:", "core 254:"))
    assert diagnose(node).incidents[0].core == 254


def test_every_cause_is_whole() -> None:
    slugs = [cause.slug for cause in all_causes()]
    assert len(set(slugs)) == len(slugs)
    for cause in all_causes():
        assert cause.title
        assert cause.confirming
        assert cause.fix
        assert cause.verify
        assert cause.yields_to <= {"*", *slugs} or cause.yields_to


def test_the_json_has_the_promised_shape() -> None:
    found = diagnose(held()).as_json()
    incident = found["incidents"][0]
    assert list(incident) == [
        "id",
        "from",
        "to",
        "core",
        "mode",
        "events",
        "episodes",
        "verdict",
        "alternatives",
    ]
    assert list(incident["verdict"]) == [
        *(
            "cause",
            "confidence",
            "summary",
            "culprit",
            "origin",
            "evidence",
            "against",
            "fix",
            "verify",
            "will_not_help",
            "walked",
        )
    ]
    assert list(incident["verdict"]["culprit"]) == [
        "comm",
        "pid",
        "cgroup",
        "unit",
        "container",
        "path",
    ]


def test_asked_about_a_moment_at_which_nothing_was_wrong() -> None:
    report = diagnose(
        drawn_node(
            "core 0: ....................\ncore 1: .....uuuuuuuuuu.....\nu: user  train[9]  /  main"
        ),
        at_ns=at(9),
    )
    assert not report.wrong
    assert report.as_json()["asked"] == {
        "at": "2025-10-09T08:53:29.000Z",
        "core": None,
        "is_wrong": False,
    }
    assert "that alone is not an incident" in report.incidents[0].verdict.summary
    assert "nothing was wrong" in diagnose(held(), at_ns=at(2)).incidents[0].verdict.summary


def test_a_core_can_be_asked_about() -> None:
    node = drawn_node(
        "core 0: ....................\ncore 1: .....xxxxxxx........\ncore 2: ......uuuuuuuu......\n"
        "x: system  tool[4]  /  m > odd\nu: user  train[9]  /  main"
    )
    (incident,) = diagnose(node, at_ns=at(9), core=2).incidents
    assert (incident.core, incident.is_wrong) == (2, False)
    (incident,) = diagnose(node, at_ns=at(9), core=1).incidents
    assert (incident.core, incident.is_wrong) == (1, True)
    assert [one.core for one in diagnose(node, core=1).incidents] == [1]
    assert not diagnose(node, core=2).incidents


TWO_CORES = (
    "core 0: {}\ncore 1: {}\ncore 2: {}\na: system  first[4]  /  m > odd_one\nb: system  second[5] "
    " /  m > odd_two"
)


def test_asked_about_a_moment_the_incident_of_that_moment_is_reported_and_not_the_one_before() -> (
    None
):
    node = drawn_node(
        TWO_CORES.format("." * 40, "." * 10 + "a" * 6 + "." * 24, "." * 19 + "b" * 6 + "." * 15)
    )
    found = {
        second: diagnose(node, at_ns=at(second)).incidents[0].core
        for second in (8, 12, 17, 18, 20, 28)
    }
    assert found == {8: 1, 12: 1, 17: 1, 18: 2, 20: 2, 28: 2}
    assert not any("also at that moment" in note for note in diagnose(node, at_ns=at(20)).notes)


def test_what_is_wrong_near_a_moment_is_reported_before_what_is_usual_at_it() -> None:
    node = drawn_node(
        TWO_CORES.format(
            "." * 40, "." * 10 + "a" * 6 + "." * 24, "." * 14 + "b" * 22 + "." * 4
        ).replace("b: system", "b: user")
    )
    (incident,) = diagnose(node, at_ns=at(19)).incidents
    assert (incident.core, incident.is_wrong) == (1, True)
    (incident,) = diagnose(node, at_ns=at(30)).incidents
    assert (incident.core, incident.is_wrong) == (2, False)


def test_asked_about_a_moment_at_which_two_cores_were_held_both_are_named() -> None:
    node = drawn_node(
        TWO_CORES.format("." * 10 + "a" * 8 + "." * 22, "." * 10 + "b" * 8 + "." * 22, "." * 40)
    )
    report = diagnose(node, at_ns=at(14))
    assert [incident.core for incident in report.incidents] == [0]
    assert any(note.startswith("also at that moment: core 1;") for note in report.notes)
    report = diagnose(node, at_ns=at(14), core=1)
    (incident,) = report.incidents
    assert (
        incident.core,
        incident.is_wrong,
        incident.verdict.culprit and incident.verdict.culprit.comm,
    ) == (1, True, "second")
    assert not any("also" in note for note in report.notes)
    assert len(diagnose(node, core=1).incidents) == 1


def test_unknown_says_how_to_look_at_this_very_window() -> None:
    (incident,) = diagnose(held()).incidents
    assert (
        "--from 2025-10-09T08:53:30.000Z --to 2025-10-09T08:53:38.000Z --cpu 1 --baseline"
        in incident.verdict.fix[0]
    )


def test_the_json_names_node_and_span() -> None:
    found = diagnose(held()).as_json()
    assert list(found) == ["schema", "node", "from", "to", "asked", "incidents", "gaps", "notes"]
    assert (found["node"], found["from"], found["asked"]) == (
        "drawn",
        "2025-10-09T08:53:20.000Z",
        None,
    )


def test_what_busy_machines_do_for_a_moment_is_no_incident_unless_somebody_felt_it() -> None:
    def faulted(seconds: int) -> DrawnNode:
        core = "." * 15 + "x" * seconds + "." * 12
        work = "memset > asm_exc_page_fault, exc_page_fault, handle_mm_fault, clear_page_erms"
        node = drawn_node(f"core 0: {'.' * len(core)}\ncore 1: {core}\nx: system  sh[4]  /  {work}")
        node.every_second(
            "memory", range(1, 16), pgfault=500, anon_bytes=1 << 30, cached_bytes=1 << 30
        )
        return node.every_second(
            "memory",
            range(16, 16 + seconds),
            pgfault=200_000,
            anon_bytes=1 << 30,
            cached_bytes=1 << 30,
        )

    assert not diagnose(faulted(3)).incidents
    assert [one.verdict.cause for one in diagnose(faulted(6)).incidents] == ["page-fault-storm"]
    assert diagnose(faulted(3).delay(17, 1, 0.3)).incidents


def test_a_walk_that_holds_a_core_for_two_seconds_is_an_incident() -> None:
    work = "read > vfs_read, seq_read, tcp4_seq_show"
    node = drawn_node(
        f"core 0: {'.' * 30}\ncore 1: {'.' * 15}xx{'.' * 13}\nx: system  ss[4]  /  {work}"
    )
    assert [one.verdict.cause for one in diagnose(node).incidents] == ["proc-net-scan"]


ALL_TABLES = ("cores", "softirqs", "samples", "stacks", "frames")


def test_where_nothing_can_be_read_there_is_an_error_and_no_verdict() -> None:
    node = held().forget(*ALL_TABLES)
    node.added["gaps"] = [
        Gap("*", at(0), at(30), "segment 2025: manifest.json fails its checksum").row()
    ]
    with pytest.raises(CorruptData, match="fails its checksum"):
        diagnose(node)
    with pytest.raises(CorruptData):
        diagnose(node, at_ns=at(9))


def test_gaps_alone_are_no_recording_of_the_node() -> None:
    node = held().forget(*ALL_TABLES)
    node.added["gaps"] = [Gap("*", at(0), at(30), "the disk was full").row()]
    with pytest.raises(RecordingError):
        diagnose(node)


def test_cores_that_cannot_be_read_are_estimated_from_samples() -> None:
    node = held()
    counted = node.info()
    node.forget("cores")
    node.info = lambda: counted  # type: ignore[method-assign]
    (incident,) = diagnose(node).incidents
    assert (incident.core, incident.mode) == (1, "system")


HALF_BUSY = """
    core 0:  ........................................
    core 1:  ...............kkkkkkkkkk...............
    k: system+idle  agent[7]  /  main > ksys_read, odd_walk
"""


def test_a_busy_core_that_makes_its_softirqs_wait_is_an_incident_although_nothing_explains_it() -> (
    None
):
    node = drawn_node(HALF_BUSY)
    assert not diagnose(node).incidents
    for second in range(17, 24):
        node.delay(second, 1, 0.06)
    (incident,) = diagnose(node).incidents
    assert (incident.core, incident.verdict.cause) == (1, "unknown")
    assert "agent" in incident.verdict.summary
    assert any("60 ms" in item.text for item in incident.verdict.evidence)
