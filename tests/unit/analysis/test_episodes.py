"""Which seconds are episodes, and which are a busy machine that is well."""

from tests.drawn_node import NS, DrawnNode, at, drawn_node

from necroscope.analysis import machine_episodes
from necroscope.analysis.detect import detect
from necroscope.analysis.engine import diagnose
from necroscope.analysis.episodes import Episode, EpisodeKind, merge_episodes, outside
from necroscope.analysis.node import Node
from necroscope.sources.cgroupfs.cgroups import Cgroups
from necroscope.sources.cgroupfs.limits import READ_LIMIT

QUIET = """
    core 0:  ..............................
    core 1:  ..............................
"""


def episodes_of(node: DrawnNode, *kinds: EpisodeKind) -> list[Episode]:
    return [episode for episode in detect(Node(node, (at(0), at(3600)))) if episode.kind in kinds]


def held(mode: str) -> DrawnNode:
    return drawn_node(f"""
        core 0:  ..............................
        core 1:  ..........xxxxxx..............
        x: {mode}  task[9]  /  main > do_work
        """)


def test_each_kernel_mode_is_seen_on_its_core() -> None:
    for mode in ("system", "irq", "softirq", "steal"):
        (episode,) = episodes_of(held(mode), EpisodeKind.SATURATED)
        assert (episode.cpu, episode.mode, episode.span) == (1, mode, (at(10), at(16)))


def test_user_time_is_no_strong_episode() -> None:
    (episode,) = episodes_of(held("user"), EpisodeKind.USER_BUSY)
    assert not episode.is_strong
    assert not diagnose(held("user")).incidents


def test_all_cores_busy_in_user_mode_is_no_episode() -> None:
    node = drawn_node(
        "core 0:  ..........uuuuuuuu........\ncore 1:  ..........uuuuuuuu........\nu: user "
        " train[9]  /  main"
    )
    assert not episodes_of(node, *EpisodeKind)


def test_a_machine_that_is_much_in_the_kernel_is_measured_by_its_own_usual() -> None:
    node = drawn_node(
        "core 0:  ssssssssssssssss\ncore 1:  ssssssssssssssss\ns: user+system  proxy[9]  /  main >"
        " splice"
    )
    assert not diagnose(node).incidents


def test_a_machine_whose_cores_are_all_held_most_of_the_time_is_not_well() -> None:
    held = "." * 40 + "s" * 200 + "." * 40
    node = drawn_node(f"core 0:  {held}\ncore 1:  {held}\ns: system  proxy[9]  /  main > splice")
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "unknown"
    assert "200.0 s" in incident.verdict.summary


def test_a_core_that_was_held_all_the_time_is_seen_beside_its_neighbours() -> None:
    node = drawn_node(
        "core 0:  ................\ncore 1:  ................\ncore 2:  ssssssssssssssss\ns: system"
        "  proxy[9]  /  m > splice"
    )
    assert [incident.core for incident in diagnose(node).incidents] == [2]


def test_a_moment_in_the_kernel_is_no_incident() -> None:
    node = drawn_node(
        "core 0:  ..............................\ncore 1:  ..........xx..................\nx:"
        " system  tar[9]  /  m > getdents"
    )
    assert not diagnose(node).incidents


def test_a_raised_softirq_that_waits_is_an_episode_from_when_it_was_raised() -> None:
    (episode,) = episodes_of(
        drawn_node(QUIET).delay(12, 1, 0.0, pending_s=1.4), EpisodeKind.SOFTIRQ_DELAYED
    )
    assert episode.span == (at(10.6), at(12))


def test_a_wait_of_a_few_milliseconds_is_nothing() -> None:
    assert not episodes_of(drawn_node(QUIET).delay(12, 1, 0.009), *EpisodeKind)


def frozen(node: DrawnNode, seconds: range, cpu: int = 1) -> DrawnNode:
    rows = node._drawn()["softirqs"]
    frozen_at = {at(second + 1) for second in seconds}
    node._cached["softirqs"] = [
        (*row[:3], *([0] * 10)) if row[0] in frozen_at and row[1] == cpu else row for row in rows
    ]
    return node


def test_softirq_counters_frozen_on_a_busy_core_are_an_episode() -> None:
    (episode,) = episodes_of(frozen(held("system"), range(11, 14)), EpisodeKind.SOFTIRQ_FROZEN)
    assert (episode.cpu, episode.span) == (1, (at(11), at(14)))


def test_a_tickless_core_in_user_mode_runs_no_softirq_and_is_well() -> None:
    assert not episodes_of(frozen(held("user"), range(10, 16)), EpisodeKind.SOFTIRQ_FROZEN)


def test_measured_waits_overrule_frozen_counters() -> None:
    node = frozen(held("system"), range(11, 14)).delay(3, 0, 0.001)
    assert not episodes_of(node, EpisodeKind.SOFTIRQ_FROZEN)


def starved(node: DrawnNode, comm: str) -> DrawnNode:
    for second in range(10, 16):
        node.add("runqueue", second + 1, cpu=1, pid=20, comm=comm, state="R", run_ns=0, delay_ns=0)
    return node


def test_a_napi_thread_that_is_runnable_without_time_starves_now() -> None:
    (episode,) = episodes_of(starved(drawn_node(QUIET), "napi/eth0-5"), EpisodeKind.THREAD_DELAYED)
    assert (episode.cpu, episode.subject) == (1, "napi/eth0-5")


def test_a_wait_that_is_booked_when_it_ends_is_counted_once() -> None:
    node = starved(drawn_node(QUIET), "napi/eth0-5")
    node.add(
        "runqueue",
        17,
        cpu=1,
        pid=20,
        comm="napi/eth0-5",
        state="S",
        run_ns=1_000_000,
        delay_ns=6_500_000_000,
    )
    (episode,) = episodes_of(node, EpisodeKind.THREAD_DELAYED)
    assert round(episode.amount, 6) == 6.5


def test_run_delay_of_ksoftirqd_alone_is_a_false_alarm() -> None:
    assert not episodes_of(starved(held("system"), "ksoftirqd/1"), EpisodeKind.THREAD_DELAYED)


def test_run_delay_of_ksoftirqd_is_a_stall_where_the_softirqs_of_its_core_stopped_too() -> None:
    assert episodes_of(
        frozen(starved(held("system"), "ksoftirqd/1"), range(10, 16)), EpisodeKind.THREAD_DELAYED
    )


def test_time_in_no_mode_is_an_episode() -> None:
    node = drawn_node(
        "core 0:  ..............................\ncore 1:  ..........__.................."
    )
    (episode,) = episodes_of(node, EpisodeKind.TIME_MISSING)
    assert (episode.cpu, episode.span) == (1, (at(10), at(12)))


def test_time_of_guests_is_user_time_and_not_missing() -> None:
    node = drawn_node(
        "core 0:  ....................\ncore 1:  ..........gg........\ng: guest  qemu[77] "
        " /machine.slice  kvm_vcpu_ioctl"
    )
    assert not episodes_of(node, EpisodeKind.TIME_MISSING)


def test_memory_pressure_and_throttling_are_of_the_whole_machine() -> None:
    node = drawn_node(QUIET).every_second("pressure", range(1, 10), resource="memory", some_ns=0)
    node.every_second("pressure", range(10, 16), resource="memory", some_ns=NS // 2)
    node.add("cgroups", 10, controller="cpu", path="/a", nr_throttled=0, throttled_ns=0)
    node.add("cgroups", 20, controller="cpu", path="/a", nr_throttled=90, throttled_ns=6 * NS)
    found = episodes_of(node, EpisodeKind.MEMORY_STALLED, EpisodeKind.THROTTLED)
    assert {(episode.kind, episode.cpu) for episode in found} == {
        (EpisodeKind.MEMORY_STALLED, None),
        (EpisodeKind.THROTTLED, None),
    }


def test_turns_are_as_long_as_the_recorder_makes_them() -> None:
    assert (READ_LIMIT, Cgroups.period_s * NS) == (
        machine_episodes._READ_AT_ONCE,
        machine_episodes._READ_EVERY_NS,
    )


def test_throttling_of_cgroups_that_are_read_in_turn_is_of_all_the_time_between() -> None:
    node = drawn_node("core 0:  " + "." * 100)
    for second in (30, 60, 90):
        node.add(
            "cgroups", second, controller="unified", path="/a", nr_throttled=30, throttled_ns=6 * NS
        )
        node.add(
            "cgroups",
            second,
            controller="unified",
            path="/",
            tracked=2_600,
            visible=2_500,
            dying=100,
        )
    (episode,) = episodes_of(node, EpisodeKind.THROTTLED)
    assert (round(episode.level, 3), episode.span, episode.amount) == (0.2, (at(0), at(90)), 90)


def test_ticks_of_a_tenth_of_a_second_give_the_same_episode() -> None:
    node = drawn_node(QUIET).forget("softirqs")
    rows = []
    for tick in range(300):
        system = 95_000_000 if 100 <= tick < 160 else 1_000_000
        rows += [
            (
                at((tick + 1) / 10),
                cpu,
                NS // 10,
                0,
                0,
                system if cpu else 0,
                NS // 10 - system,
                0,
                0,
                0,
                0,
                0,
            )
            for cpu in (0, 1)
        ]
    node._drawn()["cores"] = rows
    (episode,) = episodes_of(node, EpisodeKind.SATURATED)
    assert episode.cpu == 1
    assert abs(episode.from_ns - at(10)) < NS // 50
    assert abs(episode.to_ns - at(16)) < NS // 50


def test_a_span_is_left_without_its_holes() -> None:
    assert outside((0, 10), [(2, 3), (8, 20)]) == [(0, 2), (3, 8)]


def test_short_bursts_of_user_code_count_only_at_a_beat() -> None:
    legend = "u: user  rotate[9]  /  main, compress"
    beat = drawn_node(f"core 0: {'.' * 40}\ncore 1: {'uu......' * 5}\n{legend}")
    assert len(episodes_of(beat, EpisodeKind.BURST)) == 5
    random = drawn_node(
        f"core 0: {'.' * 40}\ncore 1: uu...uu.............uu....uu.......uu...\n{legend}"
    )
    assert not episodes_of(random, EpisodeKind.BURST)


def test_the_edges_of_an_episode_lie_within_the_ticks() -> None:
    node = drawn_node(QUIET)
    rows = [list(row) for row in node._drawn()["cores"]]
    system, idle = 5, 6
    for second, share in ((9, 0.3), (10, 1.0), (11, 1.0), (12, 0.6)):
        row = next(row for row in rows if row[0] == at(second + 1) and row[1] == 1)
        row[system], row[idle] = round(share * NS), round((1 - share) * NS)
    node._drawn()["cores"] = [tuple(row) for row in rows]
    (episode,) = episodes_of(node, EpisodeKind.SATURATED)
    assert abs(episode.from_ns - at(9.7)) < NS // 20
    assert abs(episode.to_ns - at(12.6)) < NS // 20


def test_what_is_made_one_of_two_parts_speaks_of_both() -> None:
    words = "held {level:.0%} for {amount:.1f} s"
    parts = [
        Episode(EpisodeKind.SATURATED, 1, "system", at(0), at(10), 1.0, words, "cores", amount=10.0)
    ]
    parts.append(
        Episode(EpisodeKind.SATURATED, 1, "system", at(11), at(21), 0.9, words, "cores", amount=9.0)
    )
    (whole,) = merge_episodes(parts, NS)
    assert (whole.span, whole.text) == ((at(0), at(21)), "held 95% for 19.0 s")
    (again,) = merge_episodes([whole, parts[1]], NS)
    assert again.amount == whole.amount
