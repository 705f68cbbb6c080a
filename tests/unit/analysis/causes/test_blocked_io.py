"""Nothing moves: I/O pressure at a flat level without completions; slow I/O moves."""

from tests.drawn_node import DrawnNode, drawn_node
from tests.drawn_waits import wait

from necroscope.analysis.engine import diagnose
from necroscope.analysis.report import Origin

IDLE = """
    core 0:  ..........................................
    core 1:  ..........................................
"""


def stalled(levels: list[float], blocks: int = 5, picture: str = IDLE) -> DrawnNode:
    node = drawn_node(picture)
    for second, level in enumerate([0.01] * 15 + levels + [0.01] * (26 - len(levels)), start=1):
        node.add("pressure", second, resource="io", some_ns=round(level * 1e9), full_ns=0)
    for second in range(16, 16 + len(levels)):
        node.add("softirqs", second + 0.5, cpu=0, block=blocks)
    return node


def test_a_flat_level_without_completions_is_named() -> None:
    (incident,) = diagnose(stalled([0.5] * 15)).incidents
    assert (incident.core, incident.verdict.cause) == (None, "blocked-io")


def test_slow_io_that_moves_is_not_named() -> None:
    assert not diagnose(stalled([0.5] * 15, blocks=20_000)).incidents


def test_a_level_that_comes_and_goes_is_not_named() -> None:
    assert not diagnose(stalled([0.9, 0.4, 0.7, 0.35, 0.95] * 3)).incidents


def test_a_captured_task_in_d_is_the_culprit() -> None:
    node = stalled([0.5] * 15)
    node.add(
        "tasks",
        20,
        cpu=0,
        trigger="blocked",
        pid=77,
        tid=77,
        comm="loader",
        state="D",
        stack="folio_wait_bit_common;filemap_read",
    )
    (incident,) = diagnose(node).incidents
    assert incident.verdict.culprit is not None
    assert (incident.verdict.culprit.comm, incident.verdict.culprit.path[-1]) == (
        "loader",
        "folio_wait_bit_common",
    )


def test_a_blocked_task_in_the_log_confirms_what_pressure_alone_does_not() -> None:
    node = stalled([0.9, 0.4, 0.7, 0.35, 0.95] * 3).event(
        24,
        "hung_task",
        "INFO: task du:9 blocked for more than 120 seconds.",
        pid=9,
        comm="du",
        fields='{"comm": "du", "pid": 9}',
    )
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "blocked-io"
    assert incident.verdict.culprit is not None
    assert (incident.verdict.culprit.comm, incident.verdict.culprit.pid) == ("du", 9)


def test_who_used_the_mount_before_is_reported_with_its_server() -> None:
    picture = """
        core 0:  .....r...s................................
        core 1:  ..........................................
        r: user  loader[70]  /pods/a  read > vfs_read, filemap_read, fuse_readahead, fuse_send_readpages
        s: user  objectfs[71]  /system.slice/objectfs.service  read > vfs_read, fuse_dev_read, fuse_dev_do_read
    """
    (incident,) = diagnose(stalled([0.5] * 15, picture=picture)).incidents
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "loader"
    assert incident.verdict.origin is not None
    assert incident.verdict.origin.name == "objectfs"


def test_where_nobody_is_known_nobody_is_accused() -> None:
    (incident,) = diagnose(stalled([0.5] * 15)).incidents
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm is None


def test_tasks_that_stand_in_a_wait_for_a_file_server_are_named_although_disks_are_busy() -> None:
    node = stalled([0.9] * 9, blocks=20_000)
    waiting = "folio_wait_bit_common;filemap_read;fuse_file_read_iter;vfs_read;__x64_sys_pread64"
    for pid, comm in ((5, "du"), (77, "loader"), (78, "loader")):
        node.add(
            "tasks",
            20,
            cpu=0,
            trigger="io_blocked",
            pid=pid,
            tid=pid,
            comm=comm,
            state="D",
            stack=waiting,
            file="/data/a.tar",
        )
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "blocked-io"
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "loader"
    assert any(
        "loader and 2 more are in state D" in item.text for item in incident.verdict.evidence
    )
    assert any("/data/a.tar" in item.text for item in incident.verdict.evidence)


def test_tasks_that_did_not_run_once_between_two_looks_are_named_although_the_level_changes() -> (
    None
):
    node = stalled([0.9, 0.6, 0.99, 0.7, 0.95] * 3, blocks=20_000)
    for second, trigger in ((20, "io_blocked"), (26, "io_hung")):
        node.add(
            "tasks",
            second,
            cpu=0,
            trigger=trigger,
            pid=7,
            tid=7,
            comm="du",
            state="D",
            stack="folio_wait_bit;vfs_read",
        )
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "blocked-io"
    assert any(
        "du is in state D in folio_wait_bit, and did not run once" in item.text
        for item in incident.verdict.evidence
    )


def test_the_directory_in_which_all_who_stand_have_their_files_is_to_be_acted_on() -> None:
    node = stalled([0.9] * 15, blocks=20)
    for pid, file in ((7, "/mnt/share/a/1.tar"), (8, "/mnt/share/b/2.tar")):
        for second, trigger in ((20, "io_blocked"), (26, "io_hung")):
            node.add(
                "tasks",
                second,
                cpu=0,
                trigger=trigger,
                pid=pid,
                tid=pid,
                comm="du",
                state="D",
                stack="vfs_read",
                file=file,
            )
    (incident,) = diagnose(node).incidents
    assert incident.verdict.origin == Origin("directory", "/mnt/share")


def test_tasks_that_wait_for_a_busy_disk_and_run_are_not_named() -> None:
    node = stalled([0.9, 0.6, 0.99, 0.7, 0.95] * 3, blocks=20_000)
    node.add(
        "tasks",
        20,
        cpu=0,
        trigger="io_blocked",
        pid=7,
        tid=7,
        comm="du",
        state="D",
        stack="folio_wait_bit;vfs_read",
    )
    assert not diagnose(node).incidents


BULK_READ = """
    core 0:  ..........................................
    core 1:  ...............rrrrrrrrrrrrrrr............
    r: user+iowait  loader[70]  /pods/a  read > vfs_read, nfs_file_read, filemap_read, copy_page_to_iter
"""


def looked_at(node: DrawnNode) -> DrawnNode:
    stack = "folio_wait_bit_common;filemap_read;nfs_file_read;vfs_read"
    return node.add(
        "tasks",
        20,
        cpu=0,
        trigger="io_blocked",
        pid=70,
        tid=70,
        comm="loader",
        state="D",
        stack=stack,
    )


def test_whom_the_second_look_does_not_find_has_moved() -> None:
    assert diagnose(looked_at(stalled([0.93] * 9))).incidents
    assert not diagnose(looked_at(stalled([0.93] * 15))).incidents


def test_without_a_second_look_at_a_level_below_its_own_the_plateau_counts() -> None:
    assert diagnose(looked_at(stalled([0.55] * 15))).incidents


def test_a_reader_that_runs_all_along_does_not_stand() -> None:
    assert not diagnose(looked_at(stalled([0.93] * 9, picture=BULK_READ))).incidents


def test_tasks_at_work_in_files_of_a_server_say_that_it_answers() -> None:
    assert not diagnose(stalled([0.93] * 15, picture=BULK_READ)).incidents


def test_who_runs_meanwhile_does_not_free_who_stood_at_both_looks() -> None:
    node = looked_at(stalled([0.93] * 15, picture=BULK_READ))
    node.add(
        "tasks",
        26,
        cpu=0,
        trigger="io_hung",
        pid=71,
        tid=71,
        comm="du",
        state="D",
        stack="rpc_wait_bit_killable",
    )
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "blocked-io"
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "du"


def test_a_throttled_disk_that_completes_large_requests_is_slow() -> None:
    node = stalled([0.5] * 15).forget("softirqs")
    node.add("interrupts", 10, cpu=0, irq="30", action="nvme0q1", count=40, elapsed_ns=10 * 10**9)
    assert diagnose(
        node.add(
            "interrupts", 20, cpu=0, irq="30", action="nvme0q1", count=40, elapsed_ns=10 * 10**9
        )
    ).incidents
    node.add(
        "interrupts", 30, cpu=0, irq="30", action="nvme0q1", count=4_400, elapsed_ns=10 * 10**9
    )
    assert not diagnose(node).incidents


def test_a_core_that_waits_for_io_is_idle_once() -> None:
    picture = """
        core 0:  ...............wwwwwwwwwwwwwww............
        core 1:  ..........................................
        w: iowait  du[9]  /
    """
    (incident,) = diagnose(stalled([0.5] * 15, picture=picture)).incidents
    assert any(
        "the cores were idle or waiting 98% of the time" in item.text
        for item in incident.verdict.evidence
    )


def silent(node: DrawnNode) -> DrawnNode:
    fields = '{"server": "10.100.0.60", "then": "still trying"}'
    return node.event(
        30,
        "nfs_server_silent",
        "nfs: server 10.100.0.60 not responding, still trying",
        severity=5,
        fields=fields,
    )


def test_a_file_server_that_the_log_calls_silent_is_named_without_any_pressure() -> None:
    (incident,) = diagnose(silent(drawn_node(IDLE))).incidents
    assert (incident.core, incident.verdict.cause) == (None, "blocked-io")
    assert incident.verdict.origin == Origin("host", "10.100.0.60")
    assert (
        incident.verdict.summary
        == "NFS server 10.100.0.60 does not answer, and tasks that use its files wait"
    )
    texts = [item.text for item in incident.verdict.evidence]
    assert texts[0] == "nfs: server 10.100.0.60 not responding, still trying"
    assert texts.count(texts[0]) == 1
    assert not any("stalled for I/O" in text for text in texts)


def test_a_busy_disk_does_not_free_a_silent_file_server() -> None:
    (incident,) = diagnose(
        silent(stalled([0.9, 0.4, 0.7, 0.35, 0.95] * 3, blocks=20_000))
    ).incidents
    assert incident.verdict.cause == "blocked-io"
    assert incident.verdict.confidence > 0.9
    assert not incident.verdict.against


def test_a_core_that_is_held_meanwhile_is_not_explained_by_a_silent_file_server() -> None:
    picture = """
        core 0:  ..........................................
        core 1:  ...............xxxxxxxxxxxxxxx............
        x: system  tool[44]  /  main > ksys_ioctl, odd_loop
    """
    assert "blocked-io" not in [
        one.verdict.cause for one in diagnose(silent(drawn_node(picture))).incidents
    ]


def test_a_file_server_that_answers_is_no_incident() -> None:
    assert not diagnose(
        drawn_node(IDLE).event(30, "nfs_server_answers", "nfs: server 10.100.0.60 OK")
    ).incidents


def test_a_program_that_slept_for_a_file_server_is_named_without_pressure() -> None:
    node = drawn_node("core 0:  ........................\ncore 1:  ........................")
    stack = "rpc_wait_bit_killable;rpc_run_task;nfs4_proc_getattr;vfs_statx"
    wait(node, 5, 12.0, "df", 71, stack=stack, is_open=True)
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "blocked-io"
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "df"
    assert any("waited 12.00 s" in e.text for e in incident.verdict.evidence)


def test_a_long_wait_for_a_disk_that_still_works_has_no_name() -> None:
    node = drawn_node("core 0:  ........................\ncore 1:  ........................")
    for second in range(24):
        node.add("softirqs", second + 0.5, cpu=0, block=2000 if second >= 5 else 100)
    wait(node, 5, 12.0, "etcd", 71, stack="jbd2_log_wait_commit;ext4_sync_file")
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "unknown"
    assert any("12,000 ms" in e.text for e in incident.verdict.evidence)


def test_others_are_only_mentioned_where_there_are_others() -> None:
    node = drawn_node("core 0:  ........................\ncore 1:  ........................")
    stack = "rpc_wait_bit_killable;rpc_run_task;nfs4_proc_getattr;vfs_statx"
    wait(node, 5, 12.0, "df", 71, stack=stack, is_open=True)
    summary = diagnose(node).incidents[0].verdict.summary
    assert summary == "df waited 12 s for I/O that did not complete"
    wait(node, 5, 11.0, "ls", 72, stack=stack, is_open=True)
    assert diagnose(node).incidents[0].verdict.summary.startswith("df and others waited")


def test_a_long_sleep_while_the_server_answers_others_is_not_enough() -> None:
    node = stalled([0.93] * 15, picture=BULK_READ)
    stack = "rpc_wait_bit_killable;rpc_run_task;nfs4_proc_getattr;vfs_statx"
    wait(node, 20, 12.0, "df", 71, stack=stack)
    causes = [incident.verdict.cause for incident in diagnose(node).incidents]
    assert "blocked-io" not in causes
