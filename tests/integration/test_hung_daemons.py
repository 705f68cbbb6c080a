"""Daemons that take a connection and never answer, and the whole recorder: each costs a gap that
names it, and nothing else.
"""

from pathlib import Path

import pytest
from tests.fake_daemon import never, unix_daemon
from tests.integration import private_view

from necroscope.store.query import Store

pytestmark = [pytest.mark.kernel, pytest.mark.root]


def unanswered(said: str) -> list[str]:
    return [line for line in said.splitlines() if "did not answer in time" in line]


def test_a_hung_systemd_and_a_hung_docker_cost_a_gap_and_not_the_recorder(record, tmp_path):
    run = tmp_path / "run"
    (run / "systemd/system").mkdir(parents=True)

    def show() -> None:
        private_view.own_mounts()
        private_view.bind(run, Path("/run"))

    bus, docker = run / "dbus/system_bus_socket", run / "docker.sock"
    with unix_daemon(bus, never, closes=False), unix_daemon(docker, never, closes=False):
        recorder = record(preexec=show)
        recorder.wait_until(lambda: len(unanswered(recorder.said())) >= 3, 60)
        recorder.wait_for_rows("cores", 24)
        code, _, said = recorder.stop()
    assert code == 0
    no_bus = "/run/dbus/system_bus_socket did not answer in time"
    no_docker = "/run/docker.sock did not answer in time"
    assert sorted(unanswered(said)) == [
        f"warning: containers: {no_docker}",
        f"warning: facts: services: {no_bus}; images: {no_docker}",
        f"warning: units: {no_bus}",
    ]
    store = Store.open(recorder.directory)
    causes = {gap.table: gap.cause for gap in store.info().gaps}
    assert "system_bus_socket did not answer in time" in causes["units"]
    assert "docker.sock did not answer in time" in causes["containers"]
    ticks = store.rows("cores", 0, 1 << 62, cpus=[0]).to_pylist()
    assert len(ticks) >= 10
    assert max(tick["elapsed_ns"] for tick in ticks) < 2_000_000_000, "no tick waited for them"
    assert store.rows("facts", 0, 1 << 62).num_rows > 50, "facts come from others too"
