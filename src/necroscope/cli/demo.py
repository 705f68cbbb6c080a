"""`necroscope demo`: the story in a minute, from the shipped recording of a real incident, or
live.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from importlib.resources import as_file, files
from pathlib import Path
from threading import Thread
from typing import Final

import click

from necroscope.analysis.engine import diagnose
from necroscope.cli.demo_fleet import show_fleet
from necroscope.cli.view import serve
from necroscope.errors import NecroscopeError, PermissionMissing, RecordingError, UsageError
from necroscope.store.query import Store
from necroscope.views.report_text import report_to_text

SCENARIO: Final = "zombie-memcg-walk"
_LOOPBACK: Final = "127.0.0.1"
_START_S: Final = 300.0
_SEE: Final = f"see what it says: necroscope lab run {SCENARIO} --dir D"
_STORY: Final = """\
An unused container crashes at every start, and each start leaves a dead memory cgroup
behind: thousands by now. Then an agent asks the kernel for something that visits them all. One core
is held for seconds. Recorded on a real kernel:
"""
_PROVOKED: Final = """\
Now on this machine: a container that crashes at every start, thousands of dead memory cgroups, and
an agent that has the kernel walk them. It takes two minutes, costs one core for half a minute, and
is undone after.
"""
_CLICK: Final = """
On the page: read the verdict on the left; click a line of its evidence, and the page goes there.
Drag over the cores to choose a window, and the flame graph below is of that window. ? shows all
keys. Your own node: necroscope record --dir D, then view D.
"""


@click.command()
@click.option("--once", is_flag=True, help="print the verdict and end")
@click.option(
    "--live",
    is_flag=True,
    help="provoke the incident on this machine, as root, and watch it happen",
)
@click.option(
    "--fleet",
    is_flag=True,
    help="500 generated nodes: which difference between them predicts the failures?",
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=0,
    metavar="N",
    help="port to listen on [any that is free]",
)
@click.option("--no-browser", is_flag=True, help="print the address, open nothing")
def command(once: bool, live: bool, fleet: bool, port: int, no_browser: bool) -> None:
    """The story in a minute: a real incident that was recorded, its verdict, and the time machine
    over it.

    Needs neither root nor Linux, except with --live.

    \b
    Examples:
      necroscope demo
      necroscope demo --once
      necroscope demo --fleet
      sudo necroscope demo --live
    """
    if live and fleet:
        raise UsageError("--live and --fleet cannot be combined", "choose one")
    if fleet:
        show_fleet(port, is_once=once, opens_browser=not no_browser)
        return
    if live:
        _provoke(port, is_once=once, opens_browser=not no_browser)
        return
    click.echo(_STORY)
    with as_file(files("necroscope.lab").joinpath("demo_recording")) as directory:
        store = Store.open(directory)
        click.echo(report_to_text(diagnose(store), _width()))
        if not once:
            click.echo(_CLICK)
            serve(store, _LOOPBACK, port, opens_browser=not no_browser)


def _provoke(port: int, *, is_once: bool, opens_browser: bool) -> None:
    """The lab in a process of its own, the page over the recording that it makes unless once, and
    the verdict when it is over.
    """
    if os.geteuid() != 0:
        raise PermissionMissing(
            "provoking an incident needs root", "sudo necroscope demo --live, or without --live"
        )
    click.echo(_PROVOKED)
    place = Path(tempfile.mkdtemp(prefix="necroscope-demo-"))
    words = ["lab", "run", SCENARIO, "--dir", str(place / "recording")]
    # A session of its own: Ctrl-C is for us, and we end it once, at our own end.
    lab = subprocess.Popen(
        [sys.executable, "-P", "-m", "necroscope", *words],
        stdout=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        if is_once:
            _print_verdict(lab, place / "recording")
            return
        store = _recording_of(lab, place / "recording")
        click.echo(_CLICK)
        Thread(target=_print_verdict_if_kept, args=(lab, place / "recording"), daemon=True).start()
        serve(store, _LOOPBACK, port, opens_browser=opens_browser)
    finally:
        if lab.poll() is None:
            lab.send_signal(signal.SIGINT)  # it undoes what it did
        lab.wait()
        shutil.rmtree(place, ignore_errors=True)


def _print_verdict(lab: subprocess.Popen[bytes], directory: Path) -> None:
    if lab.wait() != 0:
        raise RecordingError("the lab's run failed", _SEE)
    click.echo("\n" + report_to_text(diagnose(Store.open(directory)), _width()))


def _print_verdict_if_kept(lab: subprocess.Popen[bytes], directory: Path) -> None:
    # Who ends the demo meanwhile takes the recording away.
    with contextlib.suppress(NecroscopeError, OSError):
        _print_verdict(lab, directory)


def _recording_of(lab: subprocess.Popen[bytes], directory: Path) -> Store:
    deadline = time.monotonic() + _START_S
    while time.monotonic() < deadline and lab.poll() is None:
        with contextlib.suppress(NecroscopeError):
            store = Store.open(directory)
            if store.info().tables.get("cores"):
                return store
        time.sleep(0.5)
    raise RecordingError("the lab recorded nothing", _SEE)


def _width() -> int:
    return min(shutil.get_terminal_size()[0], 120) if sys.stdout.isatty() else 100
