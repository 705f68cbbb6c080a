"""How a member stood before its end: drawn as a state and two shares per second."""

from necroscope.analysis.jobs.stops import MemberWait, ProgressTick, Throttle, stop_of

NS = 1_000_000_000
WORKS, WAITS, STARVES, BLOCKED, FROZEN = "R90", "S00", "R09", "D00", "T00"


def ticks(*letters: str, core: int = 1) -> list[ProgressTick]:
    """`R90`: state, tenths of a core, tenths of waiting for one."""
    return [
        ProgressTick(
            second * NS, core, text[0], NS, int(text[1]) * NS // 10, int(text[2]) * NS // 10
        )
        for second, text in enumerate(letters, 1)
    ]


def test_a_member_that_wanted_a_core_was_starved_from_its_last_full_second() -> None:
    stop = stop_of(ticks(*[WORKS] * 10, *[STARVES] * 6), [], 16 * NS)
    assert stop is not None
    assert (stop.how, stop.core) == ("starved", 1)
    assert abs(stop.from_ns - 10 * NS) <= NS
    assert stop.to_ns == 16 * NS


def test_a_turn_now_and_then_does_not_end_it() -> None:
    stop = stop_of(ticks(WORKS, *[STARVES] * 3, WORKS, *[STARVES] * 3), [], 9 * NS)
    assert stop is not None
    assert stop.seconds >= 6


def test_a_wait_that_is_booked_at_its_end_counts_from_its_start() -> None:
    late = ProgressTick(9 * NS, 1, "R", NS, 0, 6 * NS)
    stop = stop_of([*ticks(WORKS, WORKS), late], [], 9 * NS)
    assert stop is not None
    assert (stop.how, stop.from_ns) == ("starved", 3 * NS)


def test_one_that_waits_for_a_peer_is_told_from_one_that_is_held() -> None:
    waiting = stop_of(ticks(*[WORKS] * 5, *[WAITS] * 6), [], 11 * NS)
    blocked = stop_of(ticks(*[WORKS] * 5, *[BLOCKED] * 6, *[WAITS] * 4), [], 15 * NS)
    frozen = stop_of(ticks(*[WORKS] * 5, *[FROZEN] * 6), [], 11 * NS)
    assert [one.how for one in (waiting, blocked, frozen) if one] == [
        "waiting",
        "blocked",
        "frozen",
    ]


def test_one_that_works_and_one_that_shares_its_core_fairly_did_not_stop() -> None:
    assert stop_of(ticks(*[WORKS] * 10), [], 10 * NS) is None
    assert stop_of(ticks(*["R55"] * 10), [], 10 * NS) is None
    assert stop_of(ticks(*[WORKS] * 5, STARVES, STARVES, *[WORKS] * 5), [], 12 * NS) is None


def test_who_had_the_core_for_most_of_it_is_named_with_the_core() -> None:
    waits = [
        MemberWait(second * NS, second * NS + 9 * NS // 10, 0, "hog", 5, "/hog", "hog[5] (fifo)")
        for second in range(10, 16)
    ]
    waits.append(MemberWait(12 * NS, 12 * NS + 1000, 0, "kworker", 9, None, "kworker[9]"))
    stop = stop_of(ticks(*[WORKS] * 10, *[STARVES] * 6), waits, 16 * NS)
    assert stop is not None
    assert (stop.by, stop.by_pid, stop.core) == ("hog[5] (fifo)", 5, 0)


def test_of_many_that_took_turns_none_is_named() -> None:
    waits = [
        MemberWait(second * NS, second * NS + NS // 2, 1, f"task{second}", second, None, "task")
        for second in range(10, 16)
    ]
    stop = stop_of(ticks(*[WORKS] * 10, *[STARVES] * 6), waits, 16 * NS)
    assert stop is not None
    assert stop.by is None


def test_a_program_of_many_processes_is_named_without_a_pid() -> None:
    waits = [
        MemberWait(second * NS, second * NS + NS, 1, "app", second, "/app", f"app[{second}]")
        for second in range(10, 16)
    ]
    stop = stop_of(ticks(*[WORKS] * 10, *[STARVES] * 6), waits, 16 * NS)
    assert stop is not None
    assert (stop.by, stop.by_pid) == ("app (6 processes)", None)


def test_a_sleep_for_a_lock_that_another_has_is_told_from_a_wait_for_a_peer() -> None:
    asleep = MemberWait(10 * NS, 30 * NS, 1, "agent", 7, None, "agent[7]", is_asleep=True)
    own = ticks(*[WORKS] * 10, *["S00"] * 6)
    stop = stop_of(own, [asleep], 16 * NS)
    assert stop is not None
    assert (stop.how, stop.by, stop.by_pid, stop.to_ns) == ("blocked", "agent[7]", 7, 16 * NS)
    nameless = asleep._replace(by=None, by_pid=None)
    waiting = stop_of(own, [nameless], 16 * NS)
    assert waiting is not None
    assert waiting.how == "waiting"


def test_one_that_waits_for_a_peer_at_the_end_was_not_what_the_peer_waited_for() -> None:
    """It shared its core with a start-up, long before."""
    stop = stop_of(ticks(*[STARVES] * 12, *[WORKS] * 9, *[WAITS] * 9), [], 30 * NS)
    assert stop is not None
    assert (stop.how, stop.from_ns) == ("waiting", 21 * NS)


def test_who_ran_for_a_moment_of_a_wait_was_not_in_the_way() -> None:
    """A task that is throttled waits, and the core may be idle."""
    own, ran_ns = ticks(*[WORKS] * 10, *[STARVES] * 6), NS // 20
    wait = MemberWait(10 * NS, 16 * NS, 1, "cron", 5, None, "cron[5]", ran_ns)
    for ran, by in ((ran_ns, None), (3 * NS, "cron[5]")):
        stop = stop_of(own, [wait._replace(by_ran_ns=ran)], 16 * NS)
        assert stop is not None
        assert stop.by == by


def test_its_own_quota_is_named_where_it_was_throttled_for_most_of_the_stop() -> None:
    own = ticks(*[WORKS] * 10, *[STARVES] * 6)
    hog = MemberWait(10 * NS, 16 * NS, 1, "hog", 5, None, "hog[5]", 3 * NS)
    drawn = {
        (0, 8, 0.9): "hog[5]",  # long before
        (5, 20, 0.2): "hog[5]",  # as pods are all day
        (8, 16, 0.9): "the CPU quota of /pod",
        (8, 16, 3.0): "the CPU quota of /pod",  # of several cores
        (8, 11, 3.0): "hog[5]",  # of several cores, and short
    }
    for (from_s, to_s, share), by in drawn.items():
        throttled_ns = round(share * (to_s - from_s) * NS)
        throttle = Throttle(from_s * NS, to_s * NS, throttled_ns, "/pod")
        stop = stop_of(own, [hog], 16 * NS, [throttle])
        assert stop is not None
        assert stop.by == by


def test_a_quota_does_not_hold_one_that_waits_for_its_peer() -> None:
    throttle = Throttle(0, 20 * NS, 20 * NS, "/pod")
    stop = stop_of(ticks(*[WORKS] * 5, *[WAITS] * 6), [], 11 * NS, [throttle])
    assert stop is not None
    assert (stop.how, stop.by) == ("waiting", None)


def test_rows_that_reach_beyond_the_stop_count_with_what_they_have_of_it() -> None:
    """Of a real run: the cgroup is read every ten seconds, and was throttled in 9 of 20."""
    own = ticks(*[WORKS] * 12, *[STARVES] * 9)
    rows = [Throttle(10 * NS, 20 * NS, 8 * NS, "/pod"), Throttle(20 * NS, 30 * NS, NS, "/pod")]
    stop = stop_of(own, [], 21 * NS, rows)
    assert stop is not None
    assert stop.by == "the CPU quota of /pod"


def test_of_a_limit_and_those_above_it_the_members_own_is_named() -> None:
    own = ticks(*[WORKS] * 10, *[STARVES] * 6)
    paths = ("/pods", "/pods/a/job", "/pods/a", "/")
    rows = [Throttle(8 * NS, 16 * NS, 8 * NS, path) for path in paths]
    stop = stop_of(own, [], 16 * NS, rows)
    assert stop is not None
    assert stop.by == "the CPU quota of /pods/a/job"
