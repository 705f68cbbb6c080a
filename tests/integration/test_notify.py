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
from necroscope.outlets.notify.follow import Follower, Watch
from necroscope.outlets.notify.judge import judge
from necroscope.outlets.notify.new_incidents import NewIncidents
from necroscope.outlets.notify.webhook import Webhook
from necroscope.store.query import Store

SHIPPED = files("necroscope.lab") / "demo_recording"
CAUSE = "zombie-memcg-walk"


def test_a_real_incident_is_told_once_with_its_cause(tmp_path: Path) -> None:
    with as_file(SHIPPED) as directory, receiving_server() as receiver:
        info = Store.open(directory).info()
        assert info.from_ns is not None
        assert info.to_ns is not None
        assert info.pins
        said: list[str] = []
        watch = Watch(directory, judge, NewIncidents(info.from_ns), said.append)
        webhook = Webhook(Endpoint.parse(receiver.url), None, {})
        follower = Follower(watch, [webhook], tmp_path / "told.json", said.append, lambda: 1.0, 0)
        follower.turn(info.to_ns)
        told = [request.content["incident"]["verdict"]["cause"] for request in receiver.received]
        assert CAUSE in told, said
        follower.turn(info.to_ns + 60_000_000_000)
        assert len(receiver.received) == len(told)


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
