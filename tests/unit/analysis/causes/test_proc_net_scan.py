"""A reader of socket tables is named by the walk it makes the kernel do, not by what it is
called.
"""

from tests.drawn_node import drawn_node

from necroscope.analysis.engine import diagnose

READ = "read > ksys_read, vfs_read, proc_reg_read, seq_read_iter"


def picture(*inner: str, path: str = READ) -> str:
    lines = "\n".join(
        f"    r: system  statsd[52]  /system.slice/statsd.service  {path}, {name}" for name in inner
    )
    return (
        "core 0:  ..............................\n    core 1: "
        f" ...............rrrrrr.........\n{lines}"
    )


def test_the_walk_over_sockets_is_named_with_its_reader() -> None:
    node = drawn_node(
        picture("tcp4_seq_show", "tcp_seq_next, established_get_next", "tcp4_seq_show, seq_printf")
    )
    node.add(
        "tasks",
        16,
        cpu=1,
        trigger="saturated",
        pid=52,
        tid=52,
        comm="statsd",
        file="/proc/52/net/tcp",
        samples=9,
    )
    (incident,) = diagnose(node).incidents
    assert (incident.core, incident.verdict.cause) == (1, "proc-net-scan")
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.comm == "statsd"
    assert incident.verdict.origin is not None
    assert incident.verdict.origin.name == "statsd.service"
    assert any("/proc/52/net/tcp" in item.text for item in incident.verdict.evidence)


def test_a_reader_of_mounts_is_another_story() -> None:
    (incident,) = diagnose(drawn_node(picture("m_show, show_mountinfo", "m_next"))).incidents
    assert incident.verdict.cause != "proc-net-scan"


def test_a_little_of_it_beside_other_work_is_not_named() -> None:
    node = drawn_node(picture("tcp4_seq_show", *["s_show"] * 4))
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "unknown"


def test_sockets_that_are_served_are_no_scan() -> None:
    node = drawn_node(
        picture(
            "tcp_recvmsg",
            "tcp_v4_rcv, established_get_next",
            path="recv > __sys_recvfrom, inet_recvmsg",
        )
    )
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause != "proc-net-scan"
