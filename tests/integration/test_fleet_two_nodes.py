"""Two real recorders in two network namespaces push over TLS; one lives through an incident; the
page says which, what and why.

Both record this one kernel, so they take turns: one while nothing happens, the other while the lab
provokes a blackout.
"""

import ctypes
import json
import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.collector_process import TOKEN, collector
from tests.fleet_batches import CLUSTER
from tests.integration.conftest import COMMAND, RunningRecorder
from tests.receiving_server import make_certificate

from necroscope.fleet.tokens import Grant, entry_text

pytestmark = [pytest.mark.root, pytest.mark.kernel, pytest.mark.timeout(300)]
CLONE_NEWNET, CLONE_NEWUTS = 0x4000_0000, 0x0400_0000
READ_TOKEN = "necro_reader"
SCENARIO = "softirq-blackout"
SICK, WELL = "gpu-sick", "gpu-well"
ZONES = {WELL: "b", SICK: "a"}
SOON_MS = 30_000


@dataclass(frozen=True)
class Namespace:
    """A network of its own under a host name of its own. /sys stays the machine's, as in a
    container with the host's network.
    """

    host: str
    name: str

    def enter(self) -> None:
        """In a child, before it becomes another program."""
        libc = ctypes.CDLL(None, use_errno=True)
        with open(f"/run/netns/{self.name}", "rb") as handle:
            assert libc.setns(handle.fileno(), CLONE_NEWNET) == 0
        assert libc.unshare(CLONE_NEWUTS) == 0
        socket.sethostname(self.host)


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=20)


@pytest.fixture
def namespaces() -> Iterator[dict[str, Namespace]]:
    """The collector's, and those of the nodes, each with a wire to it and nowhere else."""
    made = {
        host: Namespace(host, f"necroscope-{os.getpid()}-{host}") for host in ("collector", *ZONES)
    }
    with ExitStack() as undo:
        for namespace in made.values():
            ip("netns", "add", namespace.name)
            undo.callback(ip, "netns", "delete", namespace.name)
        middle = made["collector"].name
        for host, zone in ZONES.items():
            ip(
                "-n",
                middle,
                "link",
                "add",
                "name",
                zone,
                "type",
                "veth",
                "peer",
                "name",
                "up0",
                "netns",
                made[host].name,
            )
            ends = (
                (middle, zone, collector_address(host)),
                (made[host].name, "up0", f"10.213.{ord(zone)}.2"),
            )
            for name, device, address in ends:
                ip("-n", name, "address", "add", f"{address}/24", "dev", device)
                ip("-n", name, "link", "set", "dev", device, "up")
        # What tells them apart, besides their zone.
        ip("netns", "exec", made[SICK].name, "sysctl", "-qw", "net.core.somaxconn=77")
        yield made


def collector_address(host: str) -> str:
    return f"10.213.{ord(ZONES[host])}.1"


def provoke(directory: Path) -> dict[str, Any]:
    """What the lab knows to be true of the incident that it made."""
    words = [
        "lab",
        "run",
        SCENARIO,
        "--dir",
        str(directory),
        "--seconds",
        "8",
        "--baseline",
        "2",
        "--force",
        "--json",
    ]
    done = subprocess.run([*COMMAND, *words], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    label: dict[str, Any] = json.loads(done.stdout)
    return label


def diagnosed_cause(recording: Path) -> str:
    """What the node's own diagnosis says; the fleet must say the same. How right that is,
    tests/data/lab tells.
    """
    done = subprocess.run(
        [*COMMAND, "diagnose", str(recording), "--json"],
        capture_output=True,
        text=True,
        timeout=100,
    )
    (first, *_) = sorted(
        json.loads(done.stdout)["incidents"],
        key=lambda incident: -incident["verdict"]["confidence"],
    )
    return str(first["verdict"]["cause"])


@pytest.mark.slow
def test_the_page_names_the_node_the_cause_and_the_fact(
    namespaces: dict[str, Namespace],
    record: Callable[..., RunningRecorder],
    browser: Any,
    tmp_path: Path,
) -> None:
    make_certificate(tmp_path, *map(collector_address, ZONES))
    token, ca_file, tokens = (tmp_path / name for name in ("token", "ca.crt", "tokens.toml"))
    token.touch(mode=0o600)
    token.write_text(TOKEN)
    tokens.write_text(
        entry_text(TOKEN, Grant(CLUSTER, "push")) + entry_text(READ_TOKEN, Grant(CLUSTER, "read"))
    )
    lake, key = str(tmp_path / "lake"), str(tmp_path / "key.pem")
    public = ("--host", "0.0.0.0", "--tls-cert", str(ca_file), "--tls-key", key)
    enter = namespaces["collector"].enter
    with collector(lake, tokens, *public, "--compact-every", "1s", preexec=enter) as pushed_to:
        for node, zone in ZONES.items():
            url = f"https://{collector_address(node)}:{pushed_to.port}"
            place = Place(node, tmp_path / node, url, token, ca_file, namespaces[node].enter)
            recorder = place.record(record, zone)
            recorder.wait_for_rows("facts", seconds=60)
            if node == SICK:
                label = provoke(tmp_path / "lab")
            assert recorder.stop()[0] == 0
            place.push_the_rest()
    cause = diagnosed_cause(tmp_path / SICK)
    # Another collector over the same lake, which this machine's browser can reach.
    with collector(lake, tokens) as asked:
        page = browser.new_page()
        page.set_default_timeout(SOON_MS)
        words = f"token={READ_TOKEN}&tab=incidents&cause={cause}&since=-1h"
        page.goto(f"http://127.0.0.1:{asked.port}/#{words}")
        check_page(page, cause, label["culprit"]["comm"])
        page.close()


class Place(NamedTuple):
    """A node and where it pushes to."""

    node: str
    directory: Path
    url: str
    token: Path
    ca_file: Path
    enter: Callable[[], None]

    def record(self, record: Callable[..., RunningRecorder], zone: str) -> RunningRecorder:
        files = ["--push-token-file", str(self.token), "--push-ca-file", str(self.ca_file)]
        pins = ["--pin-before", "20s", "--pin-after", "2s", "--label", f"zone={zone}"]
        return record(
            "--push", self.url, *files, *pins, directory=self.directory, preexec=self.enter
        )

    def push_the_rest(self) -> None:
        """What the push process could not send in the time that it is given at the end."""
        files = ["--token-file", str(self.token), "--ca-file", str(self.ca_file)]
        words = [*COMMAND, "fleet", "push", str(self.directory), "--to", self.url, *files]
        done = subprocess.run(
            words, capture_output=True, text=True, timeout=100, preexec_fn=self.enter
        )
        assert (done.returncode, done.stderr) == (0, "")


def check_page(page: Any, cause: str, culprit: str) -> None:
    shown = page.locator("#incidents tbody tr", has_text=SICK)
    shown.first.wait_for()
    assert cause in shown.first.inner_text()
    assert culprit in shown.first.inner_text()
    assert page.locator("#incidents tbody tr", has_text=WELL).count() == 0
    # Two nodes are too few to weigh anything, and it says so; what differs between them can be
    # read.
    page.click("#tab-why")
    page.click("#why button:has-text('in which facts do they differ?')")
    differs = page.locator("#differences tbody tr", has_text="net.core.somaxconn")
    differs.wait_for()
    assert "77" in differs.inner_text()
