"""Incidents as the analysis would find them, without a recording."""

from collections.abc import Callable

import pytest
from tests.drawn_node import at

from necroscope.analysis.report import Evidence, Incident, ReportedEpisode, ReportedEvent, Verdict

MakeIncident = Callable[..., Incident]


def _make(
    from_s: float = 10,
    to_s: float = 20,
    core: int | None = 1,
    cause: str = "rt-hog",
    events: int = 0,
    cores: tuple[int, ...] = (),
) -> Incident:
    span = at(from_s), at(to_s)
    return Incident(
        id=f"{from_s}-core{core}",
        from_ns=span[0],
        to_ns=span[1],
        core=core,
        mode="system",
        events=tuple(
            ReportedEvent(span[1], "nic_reset", core, "eth0", 1, None, "x" * 100)
            for _ in range(events)
        ),
        episodes=tuple(
            ReportedEpisode("saturated", one, "system", *span, "held", "cores") for one in cores
        ),
        verdict=Verdict(cause, "title", 0.9, "summary", evidence=(Evidence("seen", *span, 1),)),
    )


@pytest.fixture
def incident() -> MakeIncident:
    return _make
