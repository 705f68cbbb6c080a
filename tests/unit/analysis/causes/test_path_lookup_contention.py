"""The wait for a directory entry: the frame below the wait says so, and another core has the
holder.
"""

from tests.drawn_node import drawn_node

from necroscope.analysis.engine import diagnose

STAT = (
    "stat > user_path_at, complete_walk, try_to_unlazy, lockref_get_not_dead,"
    " native_queued_spin_lock_slowpath"
)
WATCH = "add > do_inotify_add_watch, fsnotify_add_mark_locked, fsnotify_set_children_dentry_flags"
WORKS = f"""
    h: system  watcher[110]  /system.slice/watch.service  {WATCH}
    w: system  loader[120]  /pods/g  {STAT}
    w: system  loader[121]  /pods/g  {STAT}
"""
# The waiters come in waves, the holder is busy in between as well.
WAIT = f"""
    core 0:  ..................hhhh.........
    core 1:  ...............wwwwwwwwww......
    {WORKS}
"""


def test_waiters_are_named_with_the_holder_as_origin() -> None:
    (incident,) = diagnose(drawn_node(WAIT)).incidents
    assert (incident.core, incident.verdict.cause) == (1, "path-lookup-contention")
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "loader"
    assert incident.verdict.origin is not None
    assert incident.verdict.origin.name == "watcher"


def test_the_holders_core_has_the_same_cause() -> None:
    picture = (
        "core 0:  ...............hhhhhhhhhh......\n core 1: "
        f" ..................wwww.........\n{WORKS}"
    )
    (incident,) = diagnose(drawn_node(picture)).incidents
    assert (incident.core, incident.verdict.cause) == (0, "path-lookup-contention")
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "watcher"


def test_lookups_that_do_not_wait_are_not_named() -> None:
    picture = WAIT.replace(", lockref_get_not_dead, native_queued_spin_lock_slowpath", "")
    assert "path-lookup-contention" not in [
        one.verdict.cause for one in diagnose(drawn_node(picture)).incidents
    ]
