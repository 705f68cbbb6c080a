"""The flush of cgroup statistics: contended or not, and not a walk over the dead."""

from tests.drawn_node import drawn_node

from necroscope.analysis.engine import diagnose

FLUSH = """
    core 0:  ...............rrrrrrrr.......
    core 1:  ...............rrrrrrrr.......
    r: system  exporter[130]  /system.slice/x.service  Read > memory_stat_show, css_rstat_flush, mem_cgroup_css_rstat_flush
    r: system  exporter[131]  /system.slice/x.service  Read > memory_stat_show, css_rstat_flush, native_queued_spin_lock_slowpath
"""
ALONE = """
    core 0:  ..............................
    core 1:  ...............rrrrrrrr.......
    r: system  exporter[130]  /system.slice/x.service  Read > memory_stat_show, cgroup_rstat_flush, mem_cgroup_css_rstat_flush
"""


def test_readers_that_wait_for_each_other_are_named() -> None:
    verdicts = {one.verdict.cause for one in diagnose(drawn_node(FLUSH)).incidents}
    assert verdicts == {"rstat-flush-contention"}


def test_one_reader_alone_is_not_contention() -> None:
    (incident,) = diagnose(drawn_node(ALONE)).incidents
    assert incident.verdict.cause == "unknown"
    assert incident.alternatives[0].cause == "rstat-flush-contention"


def test_dead_cgroups_beside_it_do_not_make_it_their_walk() -> None:
    verdicts = {
        one.verdict.cause for one in diagnose(drawn_node(FLUSH).zombies(14, 20_000)).incidents
    }
    assert verdicts == {"rstat-flush-contention"}
