"""Bursts are told by who ran, also on a core that others keep busy."""

from tests.drawn_node import DrawnNode, drawn_node

from necroscope.analysis.burst_episodes import burst_episodes
from necroscope.analysis.episodes import Episode
from necroscope.analysis.node import Node
from necroscope.analysis.recording import Recording

WORK = """
    j: user  rotate[9]  /  main, deflate
    s: system  rotate[9]  /  main > ksys_read, vfs_read
    u: user  trainer[7]  /  main, step
"""


def bursts(core: str, other: str = "") -> list[Episode]:
    drawn: DrawnNode = drawn_node(f"core 0: {core}\n core 1: {other or '.' * len(core)}\n{WORK}")
    recording: Recording = drawn
    info = recording.info()
    assert info.from_ns is not None
    assert info.to_ns is not None
    return [e for e in burst_episodes(Node(recording, (info.from_ns, info.to_ns))) if e.subject == "rotate"]


def test_each_burst_at_a_steady_beat_is_a_weak_episode_of_its_program() -> None:
    found = bursts("....jj........jj........jj........jj........jj....")
    assert [round(e.seconds) for e in found] == [2, 2, 2, 2, 2]
    assert {(e.cpu, e.mode, e.is_strong, e.subject) for e in found} == {(0, "user", False, "rotate")}


def test_a_core_that_is_never_idle_hides_nothing() -> None:
    assert len(bursts("uuuujjuuuuuuuujjuuuuuuuujjuuuuuuuujjuuuuuuuujjuuuu")) == 5


def test_what_comes_at_random_or_too_seldom_is_none() -> None:
    assert not bursts("..jj..........jj....jj................jj......jj..")
    assert not bursts("....jj........jj........jj........................")


def test_what_never_rests_is_none() -> None:
    assert not bursts("jjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjj")
    assert not bursts("jjjjjj.jjjjjj.jjjjjj.jjjjjj.jjjjjj.jjjjjj.jjjjjj.")


def test_what_runs_on_any_core_belongs_to_none() -> None:
    assert not bursts("....jj................jj................jj........", "............jj................jj................jj")


def test_bursts_in_the_kernel_are_of_its_mode() -> None:
    assert {e.mode for e in bursts("....ss........ss........ss........ss........ss....")} == {"system"}
