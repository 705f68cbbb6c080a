"""The answer of `fleet change`: what happened before and after, how sure, and how jobs ended."""

from typing import Any, Final

from necroscope.views.fleet.paragraphs import WIDTH, items, paragraph, table
from necroscope.views.format import MISSING

_MOST: Final = 15


def change_to_text(answer: dict[str, Any], width: int = WIDTH) -> str:
    lines = [*paragraph(answer["summary"], width), ""]
    lines += paragraph(
        f"changed from {answer['first_change'][:16]} to {answer['last_change'][:16]} UTC", width
    )
    if answer["about"] is not None:
        lines += ["", *_rates(answer)]
        chance = answer["changed"]["chance"]
        if chance is not None:
            told = f"so few, or fewer, would come about by chance with probability {chance:.1e}"
            burst = answer["changed"]["burst"]
            told += (
                f"; they come in bursts of about {burst:.1f}, and are counted so"
                if burst > 1.05
                else ""
            )
            lines += items("how sure", [told], width)
    if answer["jobs"]:
        rows = [_job(each) for each in answer["jobs"][:_MOST]]
        lines += ["", *table(("", "job", "before", "95 %", "after", "95 %"), rows)]
    return "\n".join([*lines, *items("left out", answer["notes"], width)])


def _rates(answer: dict[str, Any]) -> list[str]:
    rows = [_side("changed", answer["changed"])]
    rows += [_side("did not change", answer["others"])] if answer["others"] else []
    head = ("nodes", "", "before", "node-days", "after", "node-days", "expected", "ratio, 95 %")
    return table(head, rows, frozenset(range(1, 7)))


def _side(name: str, rates: dict[str, Any]) -> tuple[object, ...]:
    low, high = rates["ratio_low"], rates["ratio_high"]
    ratio = MISSING if low is None else f"{low:.2f} to {'?' if high is None else f'{high:.2f}'}"
    before, after = rates["before"], rates["after"]
    expected = MISSING if rates["expected"] is None else f"{rates['expected']:.1f}"
    counts = before["times"], before["node_days"], after["times"], after["node_days"]
    return name, rates["nodes"], *counts, expected, ratio


def _job(job: dict[str, Any]) -> tuple[object, ...]:
    return job["kind"], job["name"] or "(all)", *_ends(job["before"]), *_ends(job["after"])


def _ends(ends: dict[str, Any]) -> tuple[str, str]:
    if not ends["runs"]:
        return MISSING, ""
    return f"{ends['rate']:.0%} of {ends['runs']}", f"{ends['low']:.0%} to {ends['high']:.0%}"
