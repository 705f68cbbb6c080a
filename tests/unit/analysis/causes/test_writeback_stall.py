"""A task waits for pages that another made dirty."""

import pytest
from tests.drawn_node import DrawnNode, drawn_node
from tests.drawn_waits import wait

from necroscope.analysis.engine import diagnose

THROTTLED = "balance_dirty_pages;balance_dirty_pages_ratelimited_flags;generic_perform_write"
SYNC = "wb_wait_for_completion;sync_inodes_sb;sync_inodes_one_sb;iterate_supers;ksys_sync"
FSYNC = "folio_wait_writeback;__filemap_fdatawait_range;file_write_and_wait_range;ext4_sync_file"


def syncing(stack: str = SYNC) -> DrawnNode:
    node = drawn_node(
        """
        core 0:  ..............................
        core 1:  ..............................
        """
    )
    for tenth in range(20):
        wait(node, 10 + tenth / 5, 0.18, "backup", 60, stack=THROTTLED, cgroup="/backup")
    wait(node, 10.5, 3.0, "etcd", 70, stack=stack, cgroup="/etcd")
    return node


def test_the_writer_and_who_waits_for_its_pages_are_named() -> None:
    (incident,) = diagnose(syncing()).incidents
    assert incident.verdict.cause == "writeback-stall"
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "backup"
    assert "etcd waited up to 3.0 s" in incident.verdict.summary
    assert "while backup wrote faster than its disk can" in incident.verdict.summary


def test_a_sync_of_one_file_waits_for_its_own_pages() -> None:
    assert not diagnose(syncing(FSYNC)).incidents


@pytest.mark.parametrize(("each_s", "count"), [(0.18, 1), (0.15, 0)])
def test_pauses_of_a_task_are_added_up_by_second(each_s: float, count: int) -> None:
    node = wait(syncing(FSYNC), 13.6, 1.3, "etcd", 70, stack=FSYNC, cgroup="/etcd")
    for second in range(10, 15):
        for place in range(3):
            started = second + place / 4
            wait(node, started, each_s, "etcd", 70, stack=THROTTLED, cgroup="/etcd")
    for tenth in range(20, 30):
        wait(node, 10 + tenth / 5, 0.18, "backup", 60, stack=THROTTLED, cgroup="/backup")
    assert len(diagnose(node).incidents) == count


def test_who_waits_for_its_own_pages_is_at_work() -> None:
    node = syncing()
    node.added["waits"] = [row for row in node.added["waits"] if "etcd" not in row]
    wait(node, 10.5, 3.0, "backup", 60, stack=SYNC, cgroup="/backup")
    assert not diagnose(node).incidents


def test_a_sync_that_nobody_is_seen_to_write_against_has_no_name() -> None:
    node = syncing()
    node.added["waits"] = [row for row in node.added["waits"] if "backup" not in row]
    assert not diagnose(node).incidents


def test_of_two_that_write_as_much_neither_is_to_blame() -> None:
    node = wait(syncing(FSYNC), 13.6, 1.3, "etcd", 70, stack=FSYNC, cgroup="/etcd")
    for tenth in range(25):
        for comm, pid in (("copy", 61), ("backup", 60)):
            wait(node, 10 + tenth / 5, 0.18, comm, pid, stack=THROTTLED)
    assert not diagnose(node).incidents


def one_sync(
    *, queued_mb: int = 100, falls_mb: int = 10, writer: str = "backup[60]", stack: str = FSYNC
) -> DrawnNode:
    """One fsync of 9 s; another program wrote into files just before, and its pages go out."""
    node = drawn_node(
        f"""
        core 0:  .........w....................
        core 1:  ..............................
        w: system  {writer}  /backup  main > ksys_write, generic_perform_write
        """
    )
    for second in range(9):
        node.add("memory", second, dirty_bytes=0, writeback_bytes=0)
    for second in range(9, 25):
        queued = max(0, queued_mb - max(0, second - 10) * falls_mb)
        node.add("memory", second + 0.9, dirty_bytes=0, writeback_bytes=queued << 20)
    return wait(node, 10.5, 9.0, "etcd", 70, stack=f"{stack};do_fsync", cgroup="/etcd")


@pytest.mark.parametrize("stack", [FSYNC, "jbd2_log_wait_commit;ext4_sync_file"])
def test_one_sync_behind_the_pages_of_another_program_is_named_with_the_writer(stack: str) -> None:
    (incident,) = diagnose(one_sync(stack=stack)).incidents
    verdict = incident.verdict
    assert verdict.cause == "writeback-stall"
    assert verdict.culprit is not None
    assert verdict.culprit.comm == "backup"
    assert "etcd waited up to 9.0 s" in verdict.summary
    assert 0.5 <= verdict.confidence < 0.9, "the pages may be of another disk"
    assert any("MB of pages were written" in item.text for item in verdict.evidence)
    assert any("same disk is not recorded" in item.text for item in verdict.against)


def test_a_sync_while_no_pages_are_written_has_another_reason() -> None:
    assert "writeback-stall" not in [
        incident.verdict.cause for incident in diagnose(one_sync(queued_mb=1, falls_mb=0)).incidents
    ]


def test_a_sync_of_what_the_program_wrote_itself_is_its_work() -> None:
    node = one_sync(writer="etcd[70]")
    assert "writeback-stall" not in [i.verdict.cause for i in diagnose(node).incidents]


def test_a_sync_of_a_file_of_a_server_is_not_behind_the_pages_of_this_machine() -> None:
    node = one_sync(stack="nfs_wb_all;nfs_file_write")
    assert "writeback-stall" not in [i.verdict.cause for i in diagnose(node).incidents]
