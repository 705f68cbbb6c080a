"""Events of files: paid by the writer, wanted by the watcher."""

from tests.drawn_node import drawn_node

from necroscope.analysis.engine import diagnose

EVENTS = """
    core 0:  ...............eeeeeeee.......
    core 1:  ...............wwwwwwww.......
    e: user  shipper[170]  /system.slice/shipper.service  main
    e: system  shipper[170]  /system.slice/shipper.service  read > vfs_read, inotify_read, copy_event_to_user
    w: system  logger[180]  /pods/i  write > __fsnotify_parent, fsnotify, inotify_handle_inode_event, fsnotify_insert_event
"""


def test_the_writer_is_the_culprit_and_the_watcher_the_origin() -> None:
    incident = next(one for one in diagnose(drawn_node(EVENTS)).incidents if one.core == 1)
    assert incident.verdict.cause == "fsnotify-storm"
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "logger"
    assert incident.verdict.origin is not None
    assert incident.verdict.origin.name == "shipper.service"


def test_on_the_watchers_core_the_watcher_reads_and_the_writer_makes() -> None:
    picture = "\n".join(line for line in EVENTS.splitlines() if "e: user" not in line)
    incidents = diagnose(drawn_node(picture)).incidents
    summaries = {one.core: one.verdict.summary for one in incidents}
    assert summaries[min(summaries)].startswith("shipper reads file events that logger causes")


def test_a_writer_that_nobody_watches_is_not_named() -> None:
    picture = EVENTS.replace(
        "__fsnotify_parent, fsnotify, inotify_handle_inode_event, fsnotify_insert_event",
        "ext4_file_write_iter",
    )
    assert "fsnotify-storm" not in [
        one.verdict.cause for one in diagnose(drawn_node(picture)).incidents
    ]


def test_marking_a_directorys_children_is_not_making_events() -> None:
    picture = EVENTS.replace(
        "__fsnotify_parent, fsnotify, inotify_handle_inode_event",
        "fsnotify_set_children_dentry_flags",
    )
    picture = picture.replace(", fsnotify_insert_event", "")
    assert "fsnotify-storm" not in [
        one.verdict.cause for one in diagnose(drawn_node(picture)).incidents
    ]
