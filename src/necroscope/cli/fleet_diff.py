"""`necroscope fleet diff`: how two nodes or two groups of nodes differ."""

from pathlib import Path

import click

from necroscope.cli.difference_gate import judge, pass_gate, read_allow_list, with_gate
from necroscope.cli.fleet_asking import AnswerSource, show, with_source, with_span
from necroscope.views.fleet.answers import diff_to_text


@click.command("diff")
@click.argument("a")
@click.argument("b")
@click.option(
    "--all",
    "with_all",
    is_flag=True,
    help="also host names, ids, boot times and what is different on every node",
)
@with_gate
@with_span("-7d")
@with_source
@click.option("--json", "as_json", is_flag=True, help="as JSON")
def command(
    a: str,
    b: str,
    with_all: bool,
    is_gate: bool,
    allow_files: tuple[Path, ...],
    since: str | None,
    until: str | None,
    source: AnswerSource,
    as_json: bool,
) -> None:
    """The facts in which A and B differ, the rarest difference first. Both are names of nodes, or
    expressions.

    With --gate it exits with 1 if a difference is on no allow-list. Between groups, a difference
    counts if chance alone would make it in fewer than 1 of 20 cases.

    \b
    Examples:
      necroscope fleet diff gpu-17 gpu-18 --lake L
      necroscope fleet diff zone=a zone=b --lake L
      necroscope fleet diff event=nic_reset 'not event=nic_reset' --lake L
      necroscope fleet diff zone=a zone=b --gate --allow expected.txt --lake L
    """
    allow = read_allow_list(allow_files)
    words = {"a": a, "b": b, "since": since, "until": until, "all": "true" if with_all else None}
    answer = judge(source.ask("diff", words), allow)
    show(answer, diff_to_text, as_json=as_json)
    if is_gate:
        pass_gate(answer)
