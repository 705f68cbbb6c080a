"""`diagnose --watch`: each incident of a live recording, when it is seen and once more when it is
over, as its ledger has them.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Final

from necroscope.segment.lock import is_recorded
from necroscope.verdicts.entry import IncidentState, LedgerEntry
from necroscope.verdicts.follower import Follower
from necroscope.verdicts.ledger import Ledger
from necroscope.verdicts.ledger_writer import is_kept
from necroscope.views.report_text import incident_to_text

_LOOK_S: Final = 1.0


def watch(
    directory: Path,
    width: int,
    show: Callable[[str], None],
    sleep: Callable[[float], None] = time.sleep,
) -> None:
    """Until interrupted, or until nothing records any more."""
    shown: dict[str, tuple[IncidentState, str]] = {}
    for changed in _changes(directory, sleep):
        for text in news(changed, shown, width):
            show(text + "\n")


def news(
    changed: Sequence[LedgerEntry], shown: dict[str, tuple[IncidentState, str]], width: int
) -> Iterator[str]:
    """Those of the changed entries that say something new, as text; `shown` remembers them."""
    for entry in sorted(changed, key=lambda one: one.incident.from_ns):
        now = entry.state, entry.incident.verdict.answer
        before, shown[entry.id] = shown.get(entry.id), now
        if entry.state is not IncidentState.MERGED and before != now:
            goes_on = entry.state is IncidentState.OPEN
            yield incident_to_text(entry.incident, width, goes_on=goes_on)


def _changes(directory: Path, sleep: Callable[[float], None]) -> Iterator[Sequence[LedgerEntry]]:
    """Of the ledger; where no process keeps it (--verdicts off) it is kept here, in memory."""
    ledger = Ledger.open(directory)
    yield list(ledger.entries.values())
    follower = None if is_kept(directory) else Follower(directory, ledger)
    while True:
        is_live = is_recorded(directory)
        if follower is not None:
            found = follower.look(is_live=is_live)
            changed = list(found.entries) if found is not None else []
            ledger.take(changed)
        else:
            changed = ledger.refresh()
        yield changed
        if not is_live:
            return
        sleep(_LOOK_S)
