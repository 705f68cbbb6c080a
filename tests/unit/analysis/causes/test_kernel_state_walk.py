"""A walk that no rule knows is named by its function, the population it grows with, and who made
it.
"""

from tests.drawn_node import DrawnNode, drawn_node

from necroscope.analysis.engine import diagnose
from necroscope.analysis.report import Incident

READ = "read > __x64_sys_read, ksys_read, vfs_read, proc_reg_read_iter, seq_read_iter"
READ_ON_ARM64 = (
    "read > el0t_64_sync, el0t_64_sync_handler, el0_svc, do_el0_svc,"
    " el0_svc_common.constprop.0, invoke_syscall, __arm64_sys_read, ksys_read, vfs_read, seq_read"
)
TURNS = "....w...ww...www...wwww...wwwww...wwwwww...wwwwwww......"


def walked(inner: str, path: str = READ, turns: str = TURNS) -> DrawnNode:
    quiet = "." * len(turns)
    return drawn_node(
        f"core 0:  {quiet}\ncore 1:  {turns}\n"
        f"w: system  statsd[52]  /system.slice/statsd.service  {path}, {inner}"
    )


def with_population(node: DrawnNode, kind: str, *counts: int, every_s: int = 8) -> DrawnNode:
    for number, count in enumerate(counts):
        node.add("populations", number * every_s, kind=kind, count=count)
    return node


def only(node: DrawnNode) -> Incident:
    (incident,) = diagnose(node).incidents
    return incident


def test_the_population_that_its_turns_grow_with_is_learned_without_a_list() -> None:
    node = walked("frob_walk_all, frob_visit")
    with_population(node, "slab:widget_cache", *range(10_000, 90_000, 10_000))
    with_population(node, "slab:other_cache", 5_000, 4_900, 5_100, 5_000, 4_950, 5_000, 5_050)
    incident = only(node)
    assert incident.verdict.cause == "kernel-state-walk"
    walk = incident.verdict.walked
    assert walk is not None
    assert (walk.function, walk.population) == ("frob_walk_all", "slab:widget_cache")
    assert walk.per_object_ns is not None
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "statsd"


def test_the_walk_is_found_behind_the_doors_of_an_arm64_kernel() -> None:
    node = walked("frob_walk_all, frob_visit", READ_ON_ARM64)
    with_population(node, "slab:widget_cache", *range(10_000, 90_000, 10_000))
    walk = only(node).verdict.walked
    assert walk is not None
    assert walk.function == "frob_walk_all"


def test_of_two_that_grew_alike_both_are_reported_with_what_would_separate_them() -> None:
    node = walked("frob_walk_all, frob_visit")
    with_population(node, "slab:widget_cache", *range(10_000, 90_000, 10_000))
    with_population(node, "slab:gadget_cache", *range(20_000, 180_000, 20_000))
    verdict = only(node).verdict
    assert verdict.cause == "kernel-state-walk"
    assert verdict.walked is not None
    assert {verdict.walked.population, verdict.walked.competes} == {
        "slab:widget_cache",
        "slab:gadget_cache",
    }
    assert any("let one grow or shrink alone" in item.text for item in verdict.evidence)


def test_a_name_and_a_very_large_number_are_enough_where_nothing_grew() -> None:
    node = walked("locks_show, lock_get_status", turns="." * 20 + "w" * 12 + "." * 20)
    with_population(node, "slab:file_lock_cache", 60_000)
    verdict = only(node).verdict
    assert verdict.cause == "kernel-state-walk"
    assert verdict.walked is not None
    assert (verdict.walked.population, verdict.walked.count) == ("slab:file_lock_cache", 60_000)


def test_the_same_function_with_few_objects_is_not_named() -> None:
    node = walked("locks_show, lock_get_status", turns="." * 20 + "w" * 12 + "." * 20)
    with_population(node, "slab:file_lock_cache", 30)
    assert only(node).verdict.cause == "unknown"


def test_work_that_moves_bytes_is_as_long_as_what_was_asked_for() -> None:
    for path, copies in ((READ, "rep_movs_alternative"), (READ_ON_ARM64, "__arch_copy_to_user")):
        node = walked(f"shmem_frob, {copies}", path)
        with_population(node, "slab:widget_cache", *range(10_000, 90_000, 10_000))
        assert only(node).verdict.cause == "unknown"


def test_who_made_the_objects_is_found_by_the_file_that_is_read() -> None:
    node = walked("inotify_show_fdinfo, seq_printf")
    node.works["m"] = drawn_node(
        "core 0:  m\nm: system  watcher[77]  /user.slice  main > inotify_add_frob"
    ).works["m"]
    node.cores[0] = "mm" + node.cores[0][2:]
    with_population(node, "slab:inotify_inode_mark", *range(10_000, 90_000, 10_000))
    node.add(
        "tasks",
        14,
        cpu=1,
        trigger="saturated",
        pid=52,
        tid=52,
        comm="statsd",
        file="/proc/77/fdinfo/3",
        samples=9,
    )
    node.add("populations", 9, kind="open-files", count=900, pid=77, comm="watcher", cgroup="/user")
    verdict = diagnose(node).incidents[-1].verdict
    assert verdict.origin is not None
    assert verdict.origin.name == "watcher"
    assert "made by watcher" in verdict.summary


def test_who_is_far_ahead_of_all_others_holds_what_is_walked() -> None:
    node = walked("show_smap, smap_gather_stats")
    with_population(node, "slab:vm_area_struct", *range(60_000, 140_000, 10_000))
    node.add("populations", 9, kind="mappings", count=29_000, pid=77, comm="search", cgroup="/p/a")
    node.add("populations", 9, kind="mappings", count=3_000, pid=78, comm="other", cgroup="/p/b")
    verdict = only(node).verdict
    assert verdict.origin is not None
    assert verdict.origin.name == "search"


def test_the_file_that_is_read_names_what_functions_do_not() -> None:
    node = walked("seq_hlist_start_percpu", turns="." * 20 + "w" * 12 + "." * 20)
    with_population(node, "slab:aio_kiocb/file_lock_cache", 60_000)
    file = {"file": "/proc/locks", "samples": 9}
    node.add("tasks", 22, cpu=1, trigger="saturated", pid=52, tid=52, comm="statsd", **file)
    verdict = only(node).verdict
    assert verdict.cause == "kernel-state-walk"
    assert "60,000 file locks" in verdict.summary


def test_letters_in_common_name_nobody_as_the_maker() -> None:
    node = walked("ct_seq_show, seq_printf")
    node.works["m"] = drawn_node(
        "core 0:  m\nm: system  find[77]  /user.slice  main > do_filp_open, file_close_fd, ct_irq_enter"
    ).works["m"]
    node.cores[0] = "..mm" + node.cores[0][4:]
    with_population(node, "slab:nf_conntrack", *range(20_000, 100_000, 10_000))
    verdict = diagnose(node).incidents[-1].verdict
    assert verdict.cause == "kernel-state-walk"
    assert verdict.origin is not None
    assert verdict.origin.name == "statsd.service"


def test_one_turn_that_was_cut_short_when_there_were_few_is_no_relation() -> None:
    turns = "....wwww..wwww..wwww..wwww..wwww..wwww..wwww..w......"
    node = walked("frob_walk_all, frob_visit", turns=turns)
    counts = (40_000, 40_400, 40_100, 40_300, 40_200, 40_000, 9_000)
    with_population(node, "slab:widget_cache", *counts, every_s=8)
    assert [one.verdict.cause for one in diagnose(node).incidents] == ["unknown"]
