"""What is said of a recording that could not see all."""

from tests.drawn_node import DrawnNode, at, drawn_node

from necroscope.analysis.engine import diagnose


def node() -> DrawnNode:
    return drawn_node("core 0: ..............\ncore 1: ....kkkkkkk...\nk: system  tool[4]  /  main > odd_loop")


def test_a_capture_of_another_tool_is_not_told_to_record_as_root() -> None:
    (note,) = diagnose(node().forget("cores", "softirqs")).notes
    assert note.startswith("a capture of another tool")
    assert "root" not in note


def test_a_recording_without_rights_is_told_which_are_missing() -> None:
    notes = diagnose(node().forget("samples", "stacks", "frames")).notes
    assert any("samples was not recorded: record as root or with CAP_PERFMON" in note for note in notes)


def test_a_ledger_in_which_nothing_happened_is_not_missing_and_one_that_was_refused_is() -> None:
    assert not any("cgroup_ledger" in note for note in diagnose(node()).notes)
    refused = node()
    refused.added["gaps"] = [(at(2), at(14), "cgroup_ledger", "CAP_SYS_ADMIN is missing", None, None)]
    assert any("cgroup_ledger was not recorded: record as root" in note for note in diagnose(refused).notes)
