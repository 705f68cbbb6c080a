"""What is deployed for Prometheus and Grafana: rules and a board that ask for metrics there are."""

import json
import re
import subprocess
from importlib import import_module
from pathlib import Path

import pytest
from tests.drawn_node import at, drawn_node
from tests.growing_recording import GrowingRecording
from tests.ledger_entries import ledger_entry
from tests.programs import needs_promtool, program

from necroscope.outlets.metrics_server import MetricsServer
from necroscope.store.query import Store
from necroscope.views.prometheus.node_metrics import NodeMetrics

yaml = pytest.importorskip("yaml", reason="needs PyYAML")

ROOT = Path(__file__).parents[1]
DEPLOY = ROOT / "deploy"
RULES = DEPLOY / "prometheus" / "necroscope-rules.yaml"


def made_metrics(directory: Path) -> set[str]:
    """Names of all series of a node and of a collector."""
    node = (
        drawn_node("core 0:  kkkkkkkkkk\nk: system  a[1]  /  main > b")
        .zombies(5, 10)
        .delay(4, 0, 0.2)
        .event(3, "nic_reset")
    )
    recording = GrowingRecording(directory / "recording", node).grow(10)
    metrics = NodeMetrics(Store.open(recording.directory), at(0), "1", ["rt-hog"])
    metrics.verdicts.take(ledger_entry("rt-hog", 1, 2))
    metrics.note_recorder(1, 1)
    with MetricsServer(
        ("127.0.0.1", 0), metrics, recording.directory, with_verdicts=False
    ) as server:
        text = server.text()
    collector = import_module("necroscope.fleet.collector.metrics")
    text += collector.Metrics().text(dict.fromkeys(collector._GAUGES, 1.0))
    return set(re.findall(r"^(necroscope_\w+)", text, re.MULTILINE)) | set(
        re.findall(r"^# TYPE (\w+)", text, re.MULTILINE)
    )


def expressions_of_board() -> list[str]:
    board = json.loads((DEPLOY / "grafana" / "necroscope.json").read_text("utf-8"))
    targets = [target["expr"] for panel in board["panels"] for target in panel.get("targets", [])]
    return [*targets, *(one["expr"] for one in board["annotations"]["list"])]


def test_metrics_that_are_named_are_made(tmp_path: Path) -> None:
    made = made_metrics(tmp_path)
    texts = {
        path.name: path.read_text("utf-8")
        for path in (*(DEPLOY / "prometheus").iterdir(), ROOT / "docs" / "prometheus.md")
    }
    texts["board"] = "\n".join(expressions_of_board())
    named = {name: set(re.findall(r"\bnecroscope_(?:\w+)", text)) for name, text in texts.items()}
    assert not {name: words - made for name, words in named.items() if words - made}
    assert len(named["board"]) > 15


def test_every_metric_is_explained(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "prometheus.md").read_text("utf-8")
    families = {re.sub(r"_(bucket|sum|count)$", "", name) for name in made_metrics(tmp_path)}
    assert not {name for name in families if f"`{name}" not in page}


@needs_promtool
def test_rules_are_right_and_fire_when_they_should() -> None:
    for words in (["check", "rules", RULES.name], ["test", "rules", "necroscope-rules-test.yaml"]):
        ran = subprocess.run(
            [str(program("promtool")), *words],
            cwd=RULES.parent,
            capture_output=True,
            text=True,
            timeout=60,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr


def test_every_alert_has_a_test() -> None:
    rules = yaml.safe_load(RULES.read_text("utf-8"))
    alerts = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
    tests = yaml.safe_load((RULES.parent / "necroscope-rules-test.yaml").read_text("utf-8"))[
        "tests"
    ]
    firing = {
        one["alertname"]
        for test in tests
        for one in test["alert_rule_test"]
        if one.get("exp_alerts")
    }
    assert firing == alerts


@needs_promtool
def test_the_board_asks_what_prometheus_understands(tmp_path: Path) -> None:
    known = {"$node": ".+", "$__rate_interval": "5m", "$__range": "1h"}
    rules = []
    for number, expression in enumerate(expressions_of_board()):
        for variable, value in known.items():
            expression = expression.replace(variable, value)  # noqa: PLW2901
        rules.append({"record": f"panel:{number}", "expr": expression})
    (tmp_path / "board.json").write_text(
        json.dumps({"groups": [{"name": "board", "rules": rules}]})
    )
    ran = subprocess.run(
        [str(program("promtool")), "check", "rules", tmp_path / "board.json"],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
