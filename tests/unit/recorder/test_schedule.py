"""What is due, in which order, and how late."""

from necroscope.recorder.schedule import DueSource, Schedule


def test_nothing_is_due_before_its_time() -> None:
    schedule = Schedule()
    schedule.add("cores", 100, first_ns=1000)
    assert schedule.take_due(999) == []
    assert schedule.next_ns() == 1000


def test_what_is_due_is_taken_once_and_moves_to_its_next_turn() -> None:
    schedule = Schedule()
    schedule.add("cores", 100, first_ns=1000)
    assert schedule.take_due(1000) == [DueSource("cores", 0)]
    assert schedule.take_due(1000) == []
    assert schedule.next_ns() == 1100


def test_a_late_reading_keeps_to_its_grid() -> None:
    schedule = Schedule()
    schedule.add("cores", 100, first_ns=1000)
    assert schedule.take_due(1030) == [DueSource("cores", 30)]
    assert schedule.next_ns() == 1100


def test_readings_missed_are_not_made_up_for() -> None:
    schedule = Schedule()
    schedule.add("cores", 100, first_ns=1000)
    assert schedule.take_due(1550) == [DueSource("cores", 550)]
    assert schedule.take_due(1550) == []
    assert schedule.next_ns() == 1600


def test_a_reading_late_by_exactly_its_period_does_not_come_twice() -> None:
    schedule = Schedule()
    schedule.add("cores", 100, first_ns=1000)
    assert schedule.take_due(1100) == [DueSource("cores", 100)]
    assert schedule.next_ns() == 1200


def test_what_is_due_together_comes_in_the_order_it_was_added() -> None:
    schedule = Schedule()
    for name in ("stacks", "cores", "softirqs"):
        schedule.add(name, 100, first_ns=1000)
    schedule.add("cgroups", 1000, first_ns=1050)
    schedule.take_due(1000)
    assert [due.name for due in schedule.take_due(1100)] == [
        "stacks",
        "cores",
        "softirqs",
        "cgroups",
    ]


def test_the_next_turn_is_the_earliest_of_all() -> None:
    schedule = Schedule()
    schedule.add("cgroups", 10_000, first_ns=1000)
    schedule.add("cores", 100, first_ns=1000)
    schedule.take_due(1000)
    assert schedule.next_ns() == 1100


def test_a_source_added_again_has_its_new_period() -> None:
    schedule = Schedule()
    schedule.add("cores", 100, first_ns=1000)
    schedule.add("cores", 10, first_ns=2000)
    assert schedule.take_due(1000) == []
    schedule.take_due(2000)
    assert schedule.next_ns() == 2010


def test_a_source_that_is_hastened_is_due_at_once_and_then_by_its_period() -> None:
    schedule = Schedule()
    schedule.add("interrupts", 1000, first_ns=5000)
    schedule.hasten("interrupts", 4200)
    assert schedule.next_ns() == 4200
    assert schedule.take_due(4250) == [DueSource("interrupts", 50)]
    assert schedule.next_ns() == 5200


def test_a_source_that_is_late_already_stays_as_late_when_it_is_hastened() -> None:
    schedule = Schedule()
    schedule.add("interrupts", 1000, first_ns=5000)
    schedule.hasten("interrupts", 5300)
    assert schedule.take_due(5300) == [DueSource("interrupts", 300)]


def test_a_source_that_was_not_added_cannot_be_hastened() -> None:
    schedule = Schedule()
    schedule.add("cores", 100, first_ns=1000)
    schedule.hasten("interrupts", 500)
    assert schedule.next_ns() == 1000


def test_one_that_was_hastened_comes_in_its_order_and_leaves_no_turn_behind() -> None:
    schedule = Schedule()
    for name in ("cores", "interrupts"):
        schedule.add(name, 100, first_ns=1000)
    schedule.add("nics", 1000, first_ns=5000)
    schedule.hasten("nics", 900)
    schedule.hasten("cores", 900)
    assert schedule.take_due(900) == [DueSource("cores", 0), DueSource("nics", 0)]
    assert schedule.take_due(1000) == [DueSource("cores", 0), DueSource("interrupts", 0)]
    assert schedule.next_ns() == 1100
