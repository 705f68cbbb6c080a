"""A real Prometheus, of Debian's package, scrapes `necroscope metrics` while a recording grows, and
its alerts fire.
"""

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from tests.drawn_node import drawn_node
from tests.growing_recording import GrowingRecording
from tests.programs import needs_prometheus, program

ROOT = Path(__file__).parents[2]
NODE = f"""
    core 0:  {"." * 60}
    core 1:  {"." * 10}{"x" * 40}{"." * 10}
    x: system  tool[44]  /  main > odd_driver_loop
"""
CONFIG = """
global: {scrape_interval: 1s, evaluation_interval: 1s}
rule_files: [RULES]
scrape_configs:
  - job_name: necroscope
    static_configs: [{targets: ["ADDRESS"]}]
"""

pytestmark = needs_prometheus


class Prometheus:
    def __init__(self, address: str) -> None:
        self.address = address

    def get(self, path: str) -> Any:
        with urllib.request.urlopen(f"http://{self.address}{path}", timeout=10) as answer:
            return json.loads(answer.read())["data"]

    def value(self, expression: str) -> float | None:
        """Of the one series that answers; None while there is none."""
        found = self.get(f"/api/v1/query?query={quote(expression)}")["result"]
        return float(found[0]["value"][1]) if found else None

    def wait_for(self, is_true: Callable[[], Any], what: str) -> Any:
        deadline = time.monotonic() + 60
        while True:
            try:
                if answer := is_true():
                    return answer
            except OSError:
                pass  # it is still starting
            assert time.monotonic() < deadline, f"{what} did not come in time"
            time.sleep(0.2)


@pytest.fixture
def recording(tmp_path: Path) -> GrowingRecording:
    node = (
        drawn_node(NODE)
        .event(20, "nic_reset")
        .zombies(5, 68_680)
        .zombies(25, 68_690)
        .delay(4, 1, 0.2)
        .delay(22, 1, 4.6)
    )
    return GrowingRecording(tmp_path / "recording", node).grow(10)


@pytest.fixture
def scraped(recording: GrowingRecording) -> Iterator[str]:
    """Address of the metrics of the recording."""
    program = "from necroscope.cli.metrics import command; command()"
    command = [
        sys.executable,
        "-c",
        program,
        str(recording.directory),
        "--listen",
        "127.0.0.1:0",
        "--no-verdicts",
    ]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        try:
            yield line.split("http://")[1].split("/")[0]
        finally:
            process.terminate()


@pytest.fixture
def prometheus(scraped: str, tmp_path: Path) -> Iterator[Prometheus]:
    rules = ROOT / "deploy" / "prometheus" / "necroscope-rules.yaml"
    config = tmp_path / "prometheus.yaml"
    config.write_text(CONFIG.replace("RULES", json.dumps(str(rules))).replace("ADDRESS", scraped))
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"127.0.0.1:{free.getsockname()[1]}"
    storage = ["--storage.tsdb.path", str(tmp_path / "data"), "--storage.tsdb.retention.time", "1h"]
    command = [
        str(program("prometheus")),
        "--config.file",
        str(config),
        "--web.listen-address",
        address,
        *storage,
        "--log.level",
        "error",
    ]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            yield Prometheus(address)
        finally:
            process.kill()


def test_prometheus_scrapes_a_growing_recording_and_its_alerts_fire(
    prometheus: Prometheus, recording: GrowingRecording, leak_check: None
) -> None:
    prometheus.wait_for(
        lambda: prometheus.value("necroscope_recorder_up") is not None, "the first scrape"
    )
    assert prometheus.value('necroscope_events_total{kind="nic_reset"}') == 0
    recording.grow(60)
    prometheus.wait_for(
        lambda: prometheus.value('necroscope_events_total{kind="nic_reset"}') == 1, "the reset"
    )
    assert prometheus.value('necroscope_worst_core_number{mode="system"}') == 1
    assert prometheus.value("max(necroscope_cgroups_dying)") == 68_690
    assert prometheus.value('necroscope_softirq_worst_delay_seconds{vector="net_rx"}') == 4.6

    def firing() -> set[str]:
        return {
            one["labels"]["alertname"]
            for one in prometheus.get("/api/v1/alerts")["alerts"]
            if one["state"] == "firing"
        }

    expected = {"NecroscopeNicReset", "NecroscopeCoreHeld", "NecroscopeSoftirqDelayed"}
    prometheus.wait_for(lambda: firing() >= expected, "the alerts")
    (target,) = prometheus.get("/api/v1/targets")["activeTargets"]
    assert (target["health"], target["lastError"]) == ("up", "")
    rules = [rule for group in prometheus.get("/api/v1/rules")["groups"] for rule in group["rules"]]
    assert {rule["name"]: rule.get("lastError") for rule in rules if rule["health"] == "err"} == {}
    assert (prometheus.value('count({job="necroscope", __name__=~"necroscope_.+"})') or 0) < 250
