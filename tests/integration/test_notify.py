"""The recording of a real incident, as it is shipped: the webhook is told of it once, with its
cause; the metrics count it.
"""

import os
import subprocess
import sys
from importlib.resources import as_file, files
from pathlib import Path

from tests.receiving_server import receiving_server

from necroscope.fleet.request import Endpoint
from necroscope.outlets.notify.notifier import Notifier
from necroscope.outlets.notify.webhook import Webhook
from necroscope.verdicts.reading import current_ledger

SHIPPED = files("necroscope.lab") / "demo_recording"
CAUSE = "zombie-memcg-walk"


def test_a_real_incident_is_reported_once_with_its_cause(tmp_path: Path) -> None:
    with as_file(SHIPPED) as directory, receiving_server() as receiver:
        said: list[str] = []
        webhook = Webhook(Endpoint.parse(receiver.url), None, "node", {})
        ledger = current_ledger(directory)
        notebook = tmp_path / "announced.json"
        for now_ns in (1_800_000_000_000_000_000, 1_800_000_060_000_000_000):
            Notifier(ledger, [webhook], notebook, said.append, lambda: 1.0, 0).turn(now_ns)
        found = [request.content["incident"]["verdict"]["cause"] for request in receiver.received]
        assert found.count(CAUSE) == 1, said


def test_a_real_incident_is_counted_by_its_cause() -> None:
    program = "from necroscope.cli.metrics import command; command()"
    with as_file(SHIPPED) as directory:
        words = [sys.executable, "-c", program, str(directory), "--once", "--since", "24h"]
        ran = subprocess.run(
            words,
            capture_output=True,
            text=True,
            timeout=100,
            env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
        )
    assert ran.returncode == 0, ran.stderr
    assert f'necroscope_incidents_total{{cause="{CAUSE}"}} 1' in ran.stdout
    assert 'necroscope_worst_core_ratio{mode="system"} 1\n' in ran.stdout
