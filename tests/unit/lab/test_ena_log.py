"""The emulated driver's lines are those that the recorder knows of the real one, in every
version.
"""

from random import Random

import pytest

from necroscope.lab import ena_log
from necroscope.sources.kernel_log.patterns import PatternSet

STARVED = ena_log.Silence(
    queue=3,
    threshold_ms=5000,
    since_poll_ms=6596,
    since_interrupt_ms=6600,
    is_scheduled=True,
    cpu=7,
)
PATTERNS = PatternSet()


def pattern_of(line: str) -> str:
    found = PATTERNS.find(line)
    assert found is not None, f"no pattern knows: {line}"
    return found[0].id


@pytest.mark.parametrize("version", ena_log.VERSIONS)
def test_every_line_of_every_version_is_known(version: str) -> None:
    device = ena_log.Device("eth0", "0000:20:03.0", version)
    lines = [
        *device.paused(STARVED),
        *device.missing_completions(STARVED, 156),
        *device.keep_alive_lost(6200),
    ]
    assert {pattern_of(line).partition(".")[0] for line in lines} == {"ena"}


def test_the_line_of_the_story_is_written_to_the_letter() -> None:
    device = ena_log.Device("eth0", "0000:20:03.0", "2.11.0g")
    assert device.paused(STARVED)[:2] == [
        (
            "ena 0000:20:03.0 eth0: TX q 3 is paused for too long (threshold 5000000)."
            " Time since last napi 6596000 usec. napi scheduled: 1"
        ),
        "ena 0000:20:03.0 eth0: napi handler hasn't been called for a long time but is scheduled",
    ]


def test_the_newest_driver_names_the_core() -> None:
    found = PATTERNS.find(ena_log.Device("eth0", "0000:20:03.0", "2.17.0g").paused(STARVED)[0])
    assert found is not None
    assert found[1]["cpu"] == "7"


def test_a_queue_whose_poll_was_not_due_is_not_said_to_starve() -> None:
    calm = ena_log.Silence(
        queue=0, threshold_ms=5000, since_poll_ms=8, since_interrupt_ms=8, is_scheduled=False, cpu=0
    )
    for version in ena_log.VERSIONS:
        lines = ena_log.Device("eth0", "0000:20:03.0", version).paused(calm)
        assert "ena.napi_starved" not in [pattern_of(line) for line in lines]


def test_a_seed_chooses_the_same_device_again() -> None:
    assert ena_log.Device.invent(Random(4), "v1") == ena_log.Device.invent(Random(4), "v1")
