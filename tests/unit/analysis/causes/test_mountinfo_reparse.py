"""The table of mounts, read line by line: the reader is the culprit, who mounts is the origin."""

from tests.drawn_node import drawn_node

from necroscope.analysis.engine import diagnose

REPARSE = """
    core 0:  ...............mmmmmmmm.......
    core 1:  ...............rrrrrrrr.......
    m: user  runtime[150]  /system.slice/runtime.service  main
    m: system  runtime[150]  /system.slice/runtime.service  mount > path_mount, do_new_mount
    r: system  manager[1]  /init.scope  read > vfs_read, seq_read_iter, show_mountinfo, seq_path_root, prepend_path
"""


def test_the_reader_is_named_and_who_mounts_is_the_origin() -> None:
    incident = next(one for one in diagnose(drawn_node(REPARSE)).incidents if one.core == 1)
    assert incident.verdict.cause == "mountinfo-reparse"
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "manager"
    assert incident.verdict.origin is not None
    assert incident.verdict.origin.name == "runtime"


def test_another_table_of_proc_is_not_named() -> None:
    picture = REPARSE.replace(
        "show_mountinfo, seq_path_root, prepend_path", "tcp4_seq_show, get_tcp4_sock"
    )
    verdicts = [one.verdict.cause for one in diagnose(drawn_node(picture)).incidents]
    assert "mountinfo-reparse" not in verdicts


def test_the_maps_of_a_process_are_another_table_though_its_functions_are_called_alike() -> None:
    picture = """
        core 0:  ..............................
        core 1:  ...............rrrrrrrr.......
        r: system  profiler[8]  /  read > vfs_read, seq_read_iter, m_next, mas_find
        r: system  profiler[8]  /  read > vfs_read, seq_read_iter, show_map, show_map_vma
    """
    (incident,) = diagnose(drawn_node(picture)).incidents
    assert incident.verdict.cause == "unknown"
