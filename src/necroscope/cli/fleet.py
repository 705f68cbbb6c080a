"""`necroscope fleet`: many nodes. Finds the sub-command in `cli/fleet_NAME.py` and loads only
that.
"""

from importlib import import_module
from typing import Final

import click

_COMMANDS: Final = {
    "serve": "the collector: takes what nodes push, keeps it in a lake, answers questions",
    "token": "make a token for a node, a cluster or a reader",
    "push": "send a recording to a collector, once or as it grows",
    "nodes": "the nodes: who is alive, since when, with which labels",
    "incidents": "what happened on all nodes, newest first",
    "jobs": "jobs over nodes, how they ended, and how often they succeed",
    "job": "why a job died: from its last line to the core",
    "why": "which difference between the nodes predicts an event or a cause",
    "next": "which nodes will be hit next, and when",
    "diff": "how two nodes or two groups of nodes differ",
    "baseline": "what runs on the nodes that no one asked for, and which units never succeed",
    "change": "how often something happened before and after a change",
    "trial": "does a treatment help? Nodes by lot, a test that stops as soon as it knows",
    "flame": "the flame graph of a group of nodes, also against another group",
    "sweep": "diagnose all evidence in the lake again, on all cores or on Ray",
}


class FleetCommands(click.Group):
    """Loads `necroscope.cli.fleet_NAME` and takes its `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in _COMMANDS:
            return None
        command: click.Command = import_module(f"necroscope.cli.fleet_{cmd_name}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(_COMMANDS.items()))


@click.group("fleet", cls=FleetCommands)
def command() -> None:
    """Many nodes: collect what they record, and find which difference between them predicts the
    failures.

    \b
    Examples:
      necroscope fleet token new --cluster eu-1 --role push --to tokens.toml
      necroscope fleet serve --lake /var/lib/necroscope-lake --tokens tokens.toml
      necroscope fleet push D --to https://collector:7443 --token-file token --follow
      necroscope fleet job 4711 --lake /var/lib/necroscope-lake
      necroscope fleet why --event nic_reset --lake /var/lib/necroscope-lake
    """
