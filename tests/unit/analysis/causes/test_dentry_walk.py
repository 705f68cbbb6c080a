"""The walk over remembered names: the count goes with it, or it is another walk."""

from tests.drawn_node import DrawnNode, drawn_node

from necroscope.analysis.engine import diagnose

WALK = """
    core 0:  .........pp....................
    core 1:  ...............wwww............
    p: system  prober[310]  /pods/f  access > path_lookupat, __lookup_slow, d_alloc_parallel, __d_alloc
    w: system  cleaner[320]  /system.slice/tidy.service  rmdir > do_rmdir, vfs_rmdir, shrink_dcache_parent, d_walk, select_collect
"""


def remembered(at_first: int, at_last: int) -> DrawnNode:
    node = drawn_node(WALK).every_second(
        "memory", range(1, 17), dentries=at_first, dentries_negative=at_first // 2
    )
    return node.every_second(
        "memory", range(17, 30), dentries=at_last, dentries_negative=at_last // 2
    )


def test_the_walk_is_named_with_who_made_the_names() -> None:
    (incident,) = diagnose(remembered(3_000_000, 400_000)).incidents
    assert (incident.core, incident.verdict.cause) == (1, "dentry-walk")
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "cleaner"
    assert incident.verdict.origin is not None
    assert incident.verdict.origin.name == "/pods/f"


def test_without_dentries_in_numbers_it_is_not_named() -> None:
    assert "dentry-walk" not in [
        one.verdict.cause for one in diagnose(remembered(50_000, 49_000)).incidents
    ]


def test_waiting_for_somebody_in_the_walk_is_not_the_walk() -> None:
    picture = WALK.replace(
        "shrink_dcache_parent, d_walk, select_collect",
        "dput, __dentry_kill, native_queued_spin_lock_slowpath",
    )
    node = drawn_node(picture).every_second("memory", range(1, 30), dentries=3_000_000)
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "path-lookup-contention"


def test_the_pages_of_a_large_deleted_file_are_no_names() -> None:
    freed = (
        "__fput, dput, __dentry_kill, iput, evict, shmem_evict_inode, shmem_undo_range,"
        " truncate_inode_folio"
    )
    picture = f"""
        core 0:  ..............................
        core 1:  ...............rrrrrr.........
        r: system  object-store[8]  /  main, close > __x64_sys_close, {freed}
    """
    node = drawn_node(picture).every_second(
        "memory", range(1, 30), dentries=1_400_000, dentries_negative=100_000
    )
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "unknown"


def test_names_of_files_that_exist_are_not_said_to_be_of_failed_lookups() -> None:
    asked = "looking up names that do not exist"
    assert asked in diagnose(remembered(3_000_000, 400_000)).incidents[0].verdict.fix[0]
    node = drawn_node(WALK).every_second(
        "memory", range(1, 17), dentries=3_000_000, dentries_negative=10_000
    )
    node.every_second("memory", range(17, 30), dentries=400_000, dentries_negative=10_000)
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "dentry-walk"
    assert not any(asked in line for line in incident.verdict.fix)


def test_who_frees_names_is_not_told_to_stop_asking_for_them() -> None:
    picture = """
        core 0:  ..............................
        core 1:  ...............kkkkkk.........
        k: system  kswapd0[60]  /  > kthread, kswapd, balance_pgdat, shrink_slab, super_cache_scan, prune_dcache_sb, __dentry_kill
    """
    node = drawn_node(picture).every_second(
        "memory", range(1, 17), dentries=3_000_000, dentries_negative=2_000_000
    )
    node.every_second("memory", range(17, 30), dentries=400_000, dentries_negative=100_000)
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "dentry-walk"
    assert not any("stop kswapd0" in line for line in incident.verdict.fix)


def test_who_filled_the_cache_is_found_although_the_minutes_before_the_walk_were_busy() -> None:
    node = drawn_node(
        f"core 0:  ..pppppppp{'b' * 56}..........................\n"
        f"core 1:  {'.' * 70}wwwwwwwwww............\n"
        "p: system  prober[310]  /pods/f  access > path_lookupat, __lookup_slow, d_alloc_parallel\n"
        "b: system  builder[311]  /pods/g  read > ksys_read, frob_read\n"
        "w: system  cleaner[320]  /  rmdir > do_rmdir, vfs_rmdir, shrink_dcache_parent, d_walk\n"
    )
    for second in range(1, 90):
        grown = min(second, 10) * 300_000
        dentries = 100_000 + grown if second < 72 else 100_000
        node.add("memory", second, dentries=dentries, dentries_negative=dentries // 2)
    walks = [one for one in diagnose(node).incidents if one.verdict.cause == "dentry-walk"]
    assert walks[-1].verdict.culprit is not None
    assert walks[-1].verdict.culprit.comm == "cleaner"
    assert walks[-1].verdict.origin is not None
    assert walks[-1].verdict.origin.name == "/pods/f"
