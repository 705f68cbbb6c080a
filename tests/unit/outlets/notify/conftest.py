"""Incidents to tell of, and somebody to tell."""

from collections.abc import Callable, Iterator

import pytest
from tests.drawn_node import at
from tests.receiving_server import ReceivingServer, receiving_server

from necroscope.outlets.notify.judged import Judged

MakeIncident = Callable[..., Judged]


@pytest.fixture
def incident() -> MakeIncident:
    def make(
        from_s: float = 10, to_s: float = 20, core: int | None = 1, **values: object
    ) -> Judged:
        facts = {
            "id": f"{from_s}-core{core}",
            "node": "node-a",
            "mode": "system",
            "cause": "zombie-memcg-walk",
            "confidence": 0.93,
            "title": "a walk over dead cgroups held the core",
            "summary": "kubelet walked 68,680 dead cgroups",
            "report": {
                "id": f"{from_s}-core{core}",
                "events": [],
                "episodes": [],
                "verdict": {"cause": "zombie-memcg-walk"},
            },
        }
        return Judged(**(facts | {"from_ns": at(from_s), "to_ns": at(to_s), "core": core} | values))  # type: ignore[arg-type]

    return make


@pytest.fixture
def receiver() -> Iterator[ReceivingServer]:
    with receiving_server() as server:
        yield server
