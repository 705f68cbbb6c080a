"""Bursts are found by who ran, also on a core that others keep busy."""

from dataclasses import replace

import pytest
from tests.drawn_node import NS, DrawnNode, drawn_node

from necroscope.analysis import burst_episodes as module
from necroscope.analysis.burst_episodes import burst_episodes
from necroscope.analysis.episodes import Episode, EpisodeKind
from necroscope.analysis.node import Node
from necroscope.analysis.recording import Recording

WORK = """
    j: user  rotate[9]  /  main, deflate
    s: system  rotate[9]  /  main > ksys_read, vfs_read
    u: user  trainer[7]  /  main, step
"""


def bursts(core: str, other: str = "", samples: int | None = None) -> list[Episode]:
    """Of `rotate` on such cores; as if the recording had this many samples."""
    drawn: DrawnNode = drawn_node(f"core 0: {core}\n core 1: {other or '.' * len(core)}\n{WORK}")
    if samples is not None:
        answer = replace(drawn.info(), tables=drawn.info().tables | {"samples": samples})
        drawn.info = lambda: answer  # type: ignore[method-assign]
    recording: Recording = drawn
    info = recording.info()
    assert info.from_ns is not None
    assert info.to_ns is not None
    return [
        e
        for e in burst_episodes(Node(recording, (info.from_ns, info.to_ns)))
        if e.subject == "rotate"
    ]


def test_each_burst_at_a_steady_beat_is_a_weak_episode_of_its_program() -> None:
    found = bursts("....jj........jj........jj........jj........jj....")
    assert [round(e.seconds) for e in found] == [2, 2, 2, 2, 2]
    assert {(e.kind, e.cpu, e.mode, e.is_strong) for e in found} == {
        (EpisodeKind.BURST, 0, "user", False)
    }


def test_a_core_that_is_never_idle_hides_nothing() -> None:
    assert len(bursts("uuuujjuuuuuuuujjuuuuuuuujjuuuuuuuujjuuuuuuuujjuuuu")) == 5


def test_what_comes_at_random_or_too_seldom_is_none() -> None:
    assert not bursts("..jj..........jj....jj................jj......jj..")
    assert not bursts("....jj........jj........jj........................")


def test_what_never_rests_is_none() -> None:
    assert not bursts("jjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjjj")
    assert not bursts("jjjjjj.jjjjjj.jjjjjj.jjjjjj.jjjjjj.jjjjjj.jjjjjj.")


def test_what_runs_on_any_core_belongs_to_none() -> None:
    assert not bursts(
        "....jj................jj................jj........",
        "............jj................jj................jj",
    )


def test_bursts_in_the_kernel_are_of_its_mode() -> None:
    assert {e.mode for e in bursts("....ss........ss........ss........ss........ss....")} == {
        "system"
    }


BEAT = "....jj........jj........jj........jj........jj...."


def test_a_large_node_is_looked_through_as_well() -> None:
    assert bursts(BEAT, samples=40_000_000) == bursts(BEAT)


def test_a_burst_may_lie_over_the_end_of_what_is_read_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole = bursts(BEAT)
    monkeypatch.setattr(module, "_SLICE_NS", 5 * NS)
    assert bursts(BEAT) == whole
    assert len(whole) == 5


def test_a_node_on_which_nobody_fills_a_bin_has_none() -> None:
    assert not bursts("." * 50)
