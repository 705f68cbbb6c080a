"""A check-up in the terminal: worst first, each finding with its facts and its way out; or one line
for a monitoring plugin.
"""

from collections.abc import Callable
from typing import Final

from necroscope.analysis.checkup.checkup import Checkup
from necroscope.analysis.checkup.finding import Finding, Level
from necroscope.views.format import literal

_SIGNS: Final = {
    Level.PROBLEM: ("PROBLEM", "red"),
    Level.NOTICE: ("notice", "yellow"),
    Level.UNKNOWN: ("unknown", "magenta"),
}
Style = Callable[[str, str], str]
# node-problem-detector cuts the message of a plugin at 80 bytes unless told otherwise.
_PLUGIN_LINE: Final = 80
_LINE: Final = 300


def render(checkup: Checkup, style: Style) -> str:
    """`style` colours a text; on a pipe it returns it as it is."""
    lines = [line for finding in checkup.findings for line in _finding(finding, style)]
    if not checkup.findings:
        lines.append(
            style("well", "green")
            + ": no core is held, nothing crash-loops, and the kernel log has no reset or stall"
        )
    lines += [
        style("not seen", "magenta") + f": {literal(notice, _LINE)}" for notice in checkup.notices
    ]
    return "\n".join(lines)


def render_plugin(checkup: Checkup) -> str:
    """The worst finding in a line, and how many more there are."""
    if not checkup.findings:
        return "well"
    first = literal(checkup.findings[0].title, _LINE)
    more = f" (+{len(checkup.findings) - 1})" if len(checkup.findings) > 1 else ""
    return first[: _PLUGIN_LINE - len(more)] + more


def _finding(finding: Finding, style: Style) -> list[str]:
    sign, colour = _SIGNS[finding.level]
    lines = [f"{style(sign, colour)}: {literal(finding.title, _LINE)}"]
    lines += [f"  {literal(fact, _LINE)}" for fact in finding.facts]
    return [*lines, f"  -> {literal(finding.hint, _LINE)}"] if finding.hint else lines
