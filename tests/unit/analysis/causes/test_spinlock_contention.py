"""The generic lock: named by the function below the wait, and only where no other cause knows the
lock.
"""

from tests.drawn_node import drawn_node

from necroscope.analysis.engine import diagnose

SPIN = """
    core 0:  ...............ssssssss.......
    core 1:  ...............ssssssss.......
    s: system  worker[210]  /pods/h  fcntl > fcntl_getlk, posix_test_lock
    s: system  worker[211]  /pods/h  fcntl > fcntl_getlk, posix_test_lock, __pv_queued_spin_lock_slowpath
"""


def test_the_function_below_the_wait_is_reported() -> None:
    incidents = diagnose(drawn_node(SPIN)).incidents
    assert {one.verdict.cause for one in incidents} == {"spinlock-contention"}
    assert "posix_test_lock" in incidents[0].verdict.summary


def test_a_lock_that_another_cause_knows_is_left_to_it() -> None:
    picture = SPIN.replace(
        "fcntl_getlk, posix_test_lock", "path_lookupat, try_to_unlazy, lockref_get_not_dead"
    )
    for incident in diagnose(drawn_node(picture)).incidents:
        assert incident.verdict.cause == "path-lookup-contention"
        assert "path-lookup-contention explains it more precisely" in [
            other.why_not for other in incident.alternatives
        ]


def test_a_little_waiting_is_not_named() -> None:
    working = "\n    s: system  worker[212]  /pods/h  fcntl > fcntl_getlk, kmem_cache_alloc" * 14
    assert {
        one.verdict.cause for one in diagnose(drawn_node(SPIN.rstrip() + working)).incidents
    } == {"unknown"}


def test_softirqs_that_wait_behind_the_spinning_are_its_effect() -> None:
    node = (
        drawn_node(SPIN)
        .delay(18, 1, 0.4, "timer")
        .delay(18, 1, 0.4, "net_rx")
        .delay(18, 0, 0.4, "timer")
    )
    assert {one.verdict.cause for one in diagnose(node).incidents} == {"spinlock-contention"}


RWSEM = "down_read, rwsem_down_read_slowpath, rwsem_optimistic_spin, osq_lock"
MUTEX = "mutex_lock, __mutex_lock, mutex_spin_on_owner"


def test_who_spins_for_what_could_sleep_wants_the_lock_of_its_own_function() -> None:
    for wait in (RWSEM, MUTEX):
        picture = SPIN.replace("fcntl_getlk, posix_test_lock", "iterate_dir, kernfs_fop_readdir")
        first, *_ = diagnose(
            drawn_node(picture.replace("__pv_queued_spin_lock_slowpath", wait))
        ).incidents
        assert first.verdict.cause == "spinlock-contention"
        assert "the lock of kernfs_fop_readdir" in first.verdict.summary


def test_locks_of_one_kind_are_not_one_lock() -> None:
    wanted = ("kernfs_iop_permission", "do_user_addr_fault", "open_last_lookups", "xfs_ilock")
    works = "\n".join(
        f"s: system  worker[210]  /pods/h  main > {function}, {RWSEM}" for function in wanted
    )
    picture = (
        f"core 0:  ...............ssssssss.......\ncore 1:  ..............................\n{works}"
    )
    (incident,) = diagnose(drawn_node(picture)).incidents
    assert incident.verdict.cause == "unknown"
