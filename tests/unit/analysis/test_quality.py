"""What is said of a recording that could not see all."""

from tests.drawn_node import DrawnNode, at, drawn_node

from necroscope.analysis.engine import diagnose
from necroscope.analysis.report import Incident
from necroscope.model.reading import Gap


def node() -> DrawnNode:
    return drawn_node(
        "core 0: ..............\ncore 1: ....kkkkkkk...\nk: system  tool[4]  /  main > odd_loop"
    )


def test_a_capture_of_another_tool_is_not_told_to_record_as_root() -> None:
    (note,) = diagnose(node().forget("cores", "softirqs")).notes
    assert note.startswith("a capture of another tool")
    assert "root" not in note


def test_a_recording_without_rights_is_reported_which_are_missing() -> None:
    notes = diagnose(node().forget("samples", "stacks", "frames")).notes
    assert any(
        "samples was not recorded: record as root or with CAP_PERFMON" in note for note in notes
    )


def test_a_ledger_in_which_nothing_happened_is_not_missing_and_one_that_was_refused_is() -> None:
    assert not any("cgroup_ledger" in note for note in diagnose(node()).notes)
    refused = node()
    refused.added["gaps"] = [
        (at(2), at(14), "cgroup_ledger", "CAP_SYS_ADMIN is missing", None, None)
    ]
    assert any(
        "cgroup_ledger was not recorded: record as root" in note for note in diagnose(refused).notes
    )


def test_a_docker_that_refuses_us_does_not_hide_the_kernel_log() -> None:
    for table, is_told in (("events", False), ("log", True)):
        refused = node()
        refused.added["gaps"] = [(at(2), at(14), table, "permission denied", None, None)]
        assert any("events was not recorded" in note for note in diagnose(refused).notes) == is_told


RECLAIM = """
    core 0:  ..............................
    core 1:  ...............xxxxxxxx.......
    x: system  loader[6]  /  read > __alloc_pages_slowpath, try_to_free_pages, shrink_node
"""


def reclaiming(*seconds: int, gap: tuple[float, float] | None = None, **last: int) -> Incident:
    """Direct reclaim from second 15 on, of which the counters of these seconds were read; `last` is
    of the last of them.
    """
    drawn = drawn_node(RECLAIM).every_second("memory", range(1, 15), allocstall=0, pgscan_direct=0)
    for second in seconds:
        drawn.add(
            "memory",
            second,
            allocstall=900,
            pgscan_direct=9000,
            **(last if second == seconds[-1] else {}),
        )
    drawn.added["gaps"] = (
        [Gap("memory", at(gap[0]), at(gap[1]), "vmstat could not be read").row()] if gap else []
    )
    (incident,) = diagnose(drawn).incidents
    return incident


def test_what_was_not_recorded_is_not_told_as_if_it_had_been_looked_at() -> None:
    report = diagnose(drawn_node(RECLAIM))
    assert [other.why_not for other in report.incidents[0].alternatives] == [
        (
            "not confirmed, and memory was not recorded; what would confirm it: allocstall_* and"
            " pgscan_direct of /proc/vmstat rising"
        )
    ]
    for table in ("memory", "cgroups", "runqueue", "softnet", "pressure"):
        assert any(note.startswith(f"{table} was not recorded: ") for note in report.notes)
    assert not any(note.startswith("tasks") for note in report.notes)


def test_a_gap_over_the_incident_is_not_told_as_if_it_had_been_looked_at() -> None:
    (other,) = reclaiming(gap=(14, 24)).alternatives
    assert other.why_not.startswith("not confirmed, and memory was not recorded; ")


def test_a_gap_in_what_the_verdict_leans_on_lowers_it() -> None:
    whole, part = reclaiming(*range(15, 24)).verdict, reclaiming(16, 17, gap=(17, 23)).verdict
    assert (whole.cause, part.cause) == ("direct-reclaim", "direct-reclaim")
    assert part.confidence < 0.95 * whole.confidence
    assert [item.text for item in part.against] == [
        "the recording has a gap in memory during the incident: vmstat could not be read"
    ]


def test_counters_that_were_read_late_tell_of_all_the_time_before() -> None:
    late = reclaiming(16, 17, 23, gap=(17, 23), elapsed_ns=6 * 10**9).verdict
    assert late.confidence == reclaiming(*range(15, 24)).verdict.confidence


def test_gaps_in_what_the_verdict_does_not_need_are_nothing_to_it() -> None:
    drawn = drawn_node(RECLAIM).every_second("memory", range(1, 15), allocstall=0, pgscan_direct=0)
    drawn.every_second("memory", range(15, 24), allocstall=900, pgscan_direct=9000)
    drawn.added["gaps"] = [
        Gap(table, at(14), at(24), "none waited long").row()
        for table in ("softirq_delay", "units", "cgroups")
    ]
    assert (
        diagnose(drawn).incidents[0].verdict.confidence
        == reclaiming(*range(15, 24)).verdict.confidence
    )


def test_a_recording_of_a_few_seconds_is_never_very_sure() -> None:
    walk = "x: system  ss[6]  /  read > vfs_read, seq_read, tcp4_seq_show"
    (short,) = diagnose(drawn_node(f"core 0: ......\ncore 1: ..xxxx\n{walk}")).incidents
    (longer,) = diagnose(
        drawn_node(f"core 0: {'.' * 16}\ncore 1: {'.' * 12}xxxx\n{walk}")
    ).incidents
    assert short.verdict.confidence < 0.95 * longer.verdict.confidence


def test_a_gap_of_a_table_whose_rows_have_no_length_is_weighed_too() -> None:
    drawn = drawn_node("""
        core 0:  ..............................
        core 1:  ...............kkkkkk.........
        k: system  kubelet[1872]  /  Read > ksys_read, memcg_stat_show, mem_cgroup_iter
        """).zombies(14, 68_680)
    drawn.added["gaps"] = [
        Gap("cgroups", at(16), at(20), "limits of 119 of 198 memory cgroups were not read").row()
    ]
    assert diagnose(drawn).incidents[0].verdict.cause == "zombie-memcg-walk"


def test_a_lower_rate_is_no_gap_over_an_incident_whose_every_second_was_sampled() -> None:
    drawn = drawn_node(RECLAIM).every_second("memory", range(1, 15), allocstall=0, pgscan_direct=0)
    drawn.every_second("memory", range(15, 24), allocstall=900, pgscan_direct=9000)
    drawn.added["gaps"] = [Gap("samples", at(2), at(28), "sampling at 48 Hz instead of 97").row()]
    assert diagnose(drawn).incidents[0].verdict.against == ()
