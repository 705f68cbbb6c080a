"""A signal that comes when the recorder has ended, while its last segment is being sealed."""

from pathlib import Path

import pytest
from tests.integration.in_process import recorder_of, run_until_done

from necroscope.model.units import NS_PER_S
from necroscope.recorder.memory import MemorySegment


@pytest.mark.kernel
def test_stopping_what_has_ended_is_nothing() -> None:
    with recorder_of(Path("/"), MemorySegment(60 * NS_PER_S)) as (recorder, _):
        run_until_done(recorder, [lambda ticks: ticks >= 1])
        recorder.stop()
