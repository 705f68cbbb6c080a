"""Entries of a ledger to announce, and a server to announce them to."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest
from tests.drawn_node import at
from tests.receiving_server import ReceivingServer, receiving_server

from necroscope.analysis.report import Incident, Verdict
from necroscope.verdicts.entry import IncidentState, LedgerEntry

MakeEntry = Callable[..., LedgerEntry]


@pytest.fixture
def entry() -> MakeEntry:
    def make(
        from_s: float = 10,
        to_s: float = 20,
        core: int | None = 1,
        state: str = "closed",
        **values: object,
    ) -> LedgerEntry:
        verdict = Verdict(
            "zombie-memcg-walk",
            "a walk over dead cgroups held the core",
            0.93,
            "kubelet walked 68,680 dead cgroups",
        )
        incident = Incident(
            f"{from_s}-core{core}", at(from_s), at(to_s), core, "system", (), (), verdict
        )
        facts = {name: value for name, value in values.items() if name != "id"}
        incident = replace(
            incident,
            id=str(values.get("id", incident.id)),
            verdict=replace(verdict, **facts),  # type: ignore[arg-type]
        )
        return LedgerEntry(IncidentState(state), at(to_s), incident)

    return make


@pytest.fixture
def receiver() -> Iterator[ReceivingServer]:
    with receiving_server() as server:
        yield server
