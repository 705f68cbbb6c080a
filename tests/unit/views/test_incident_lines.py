"""What a screen and a check-up show of the ledger: what goes on, and what has just ended."""

from pathlib import Path

from tests.drawn_node import at
from tests.ledger_entries import ledger_entry

from necroscope.analysis.checkup.finding import Level
from necroscope.model.span import Span
from necroscope.verdicts.ledger_writer import LedgerWriter
from necroscope.views.incident_lines import incident_findings, incident_line, recent


def test_what_goes_on_and_what_has_just_ended_is_shown_newest_first(tmp_path: Path) -> None:
    writer = LedgerWriter(tmp_path)
    old, ended = ledger_entry("rt-hog", 0, 10), ledger_entry("rt-hog", 900, 910)
    going_on = ledger_entry("blocked-io", 100, 990, core=None, state="open")
    merged = ledger_entry("rt-hog", 905, 910, core=3, state="merged")
    writer.append([old, ended, going_on, merged], Span(at(0), at(1000)))
    found = recent(writer.ledger)
    assert found == [ended, going_on]
    assert [incident_line(entry) for entry in found] == [
        "incident on core 1, from 2025-10-09T09:08:20.000Z for 10 s: title",
        "incident on the node, since 2025-10-09T08:55:00.000Z: title",
    ]
    findings = incident_findings(found, "/var/lib/necroscope")
    assert [finding.level for finding in findings] == [Level.NOTICE, Level.PROBLEM]
    assert findings[0].facts == ("summary",)
    assert "necroscope diagnose /var/lib/necroscope" in findings[0].hint
