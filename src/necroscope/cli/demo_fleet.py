"""`necroscope demo --fleet`: a generated fleet of 500 nodes, the answer to why some of them lose
the network, and the page.
"""

import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from importlib.resources import as_file, files
from pathlib import Path
from typing import Final

import click

from necroscope.cli.browser import opened_in_browser
from necroscope.errors import NecroscopeError

_EVENT: Final = "nic_reset"
_ADDRESS: Final = re.compile(r"the collector is at (\S+),")
_STORY: Final = """\
500 nodes in three zones. In the last week some lost the network, again and again, and nearly all of
those are in one zone. Twenty settings differ between the zones. Which of them is it, or is it the
zone?

This fleet is generated: its nodes do not exist. Incident, stacks and counters are those of one real
recording, moved in time; resets and facts were drawn by lot. It is stored and asked as a real one
is.
"""
_WRITTEN: Final = """\
written: {fleet.nodes} generated nodes, {fleet.affected} of them with {fleet.incidents} incidents,
{fleet.bundles} of which come with their evidence.
"""
_CLICK: Final = """
On the page: above are the resets of the week, by zone. `Why` is the answer you read here, with its
counts and the nodes that decide; click one of them. `Incidents` have their verdicts, `Jobs` lead
from a job that died to the node and core that did it, `Compare` is for two zones, `Did it help` for
the fact unit_file:metrics-d.service=masked: on some nodes it was tried two days ago. The same in a
terminal, while this runs:
  necroscope fleet jobs --by zone --since -7d --lake {lake}
  necroscope fleet change --fact unit_file:metrics-d.service=masked --event nic_reset --lake {lake}
  necroscope fleet diff zone=us-east-1a zone=us-east-1b --lake {lake}
  necroscope fleet sweep --again --lake {lake}
Your own nodes: necroscope fleet serve, then necroscope record --push URL on each.
"""


def show_fleet(port: int, *, is_once: bool, opens_browser: bool) -> None:
    """Blocks until interrupted, unless it is only once."""
    # Only this demo needs a lake.
    from necroscope.fleet.demo_lake import write_demo_lake  # noqa: PLC0415
    from necroscope.fleet.lake import Lake  # noqa: PLC0415

    import_module("necroscope.fleet.ask")  # a missing database is reported before anything else
    click.echo(_STORY)
    shipped = files("necroscope.lab")
    with (
        tempfile.TemporaryDirectory(prefix="necroscope-fleet-") as place,
        as_file(shipped.joinpath("demo_recording")) as recording,
        as_file(shipped.joinpath("demo_lake")) as data,
    ):
        lake = Path(place) / "lake"
        fleet = write_demo_lake(data, recording, Lake.open(str(lake)), time.time_ns())
        click.echo(_WRITTEN.format(fleet=fleet))
        _ask(lake, "why", "--event", _EVENT)
        click.echo("\nAnd the job that died last, over four nodes:\n")
        _ask(lake, "job")
        if not is_once:
            click.echo(_CLICK.format(lake=lake))
            _serve(lake, Path(place) / "tokens.toml", port, opens_browser=opens_browser)


def _ask(lake: Path, *words: str) -> None:
    click.echo(f"$ necroscope fleet {' '.join(words)} --lake {lake}\n")
    sys.stdout.flush()
    command = [sys.executable, "-P", "-m", "necroscope", "fleet", *words, "--lake", str(lake)]
    if subprocess.run(command, check=False).returncode:
        raise NecroscopeError("the question to the fleet failed", "the lines above say why")


def _serve(lake: Path, tokens: Path, port: int, *, opens_browser: bool) -> None:
    from necroscope.fleet.tokens import Grant, entry_text, new_token  # noqa: PLC0415

    # Whichever signal ends us, also in the background of a shell, where Ctrl-C's is ignored: the
    # collector ends too.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.default_int_handler)
    token = new_token()
    tokens.write_text(entry_text(token, Grant("*", "read")), "utf-8")
    with _collector(lake, tokens, port) as (collector, address):
        page = f"{address}/#token={token}"
        click.echo(f"the fleet is at {page}\nCtrl-C ends it")
        with opened_in_browser(page) if opens_browser else nullcontext():
            for line in collector.stderr or ():
                click.echo(line, nl=False, err=True)
        if collector.wait():
            raise NecroscopeError("the collector ended", "the lines above say why")


@contextmanager
def _collector(lake: Path, tokens: Path, port: int) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """A real one, in a process of its own, on loopback."""
    options = ["--lake", str(lake), "--tokens", str(tokens), "--port", str(port)]
    command = [sys.executable, "-P", "-m", "necroscope", "fleet", "serve", *options]
    collector = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        yield collector, _address(collector)
    except KeyboardInterrupt:
        click.echo()
    finally:
        if collector.poll() is None:
            collector.send_signal(signal.SIGINT)
        collector.communicate()


def _address(collector: subprocess.Popen[str]) -> str:
    """What it says in place of an address is why it did not start."""
    said = ""
    for line in collector.stderr or ():
        if match := _ADDRESS.search(line):
            return match[1]
        said += line
    facts, _, hint = said.strip().removeprefix("error: ").partition("\nhint: ")
    raise NecroscopeError(
        f"the collector did not start: {facts}", hint or "see: necroscope fleet serve --help"
    )
