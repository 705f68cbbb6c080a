"""The story of a job as text, and a list of jobs: from a recording and from a lake alike."""

from typing import Any, Final

from necroscope.model.units import format_duration, parse_moment_ns
from necroscope.views.fleet.paragraphs import WIDTH, items, paragraph, table
from necroscope.views.format import MISSING

_MOST_STEPS: Final = 16
_MOST_JOBS: Final = 40


def job_to_text(answer: dict[str, Any], width: int = WIDTH) -> str:
    nodes = answer["nodes"]
    head = (
        f"{answer['job']} ({answer['kind']}): {answer['outcome']}, {answer['from'][:19]} to"
        f" {answer['to'][:19]} UTC, {len(answer['members'])} members on {len(nodes)} nodes"
    )
    lines = [*paragraph(head, width), "", *paragraph(answer["blame_words"], width)]
    lines += paragraph(answer["answer"], width, "  ")
    if not answer["is_order_known"]:
        lines += paragraph(
            "which was first is uncertain: the times are closer than clocks and ticks can separate",
            width,
            "  ",
        )
    if answer["chain"]:
        rows = [_step(step) for step in answer["chain"][:_MOST_STEPS]]
        lines += ["", *table(("time (UTC)", "", "node", "core", "what"), rows)]
        if len(answer["chain"]) > _MOST_STEPS:
            lines.append(f"and {len(answer['chain']) - _MOST_STEPS} more, see --json")
    lines += items("what it cost", _cost(answer["cost"]), width)
    if answer["blame"] == "machine":
        lines += items("look closer", _closer(answer), width)
    return "\n".join([*lines, *items("what is not known", answer["notes"], width)])


def jobs_to_text(answer: dict[str, Any], width: int = WIDTH) -> str:
    head = f"{answer['count']} jobs, {answer['from'][:16]} to {answer['to'][:16]} UTC"
    lines = [*paragraph(head, width), ""]
    rows = [
        (
            each["to"][:19].replace("T", " "),
            each["kind"],
            each["job"],
            each["outcome"],
            len(each["nodes"]),
            _length(each),
        )
        for each in answer["jobs"][:_MOST_JOBS]
    ]
    if rows:
        lines += table(("last seen", "kind", "job", "outcome", "nodes", "ran"), rows)
    if answer["count"] > _MOST_JOBS:
        lines.append(f"and {answer['count'] - _MOST_JOBS} more, see --json")
    return "\n".join(lines).rstrip()


def _step(step: dict[str, Any]) -> tuple[object, ...]:
    core = step["core"] if step["core"] is not None else MISSING
    return step["time"][11:23], f"±{step['error_ms']} ms", step["node"], core, step["text"]


def _cost(cost: dict[str, Any]) -> list[str]:
    words = [f"{cost['node_hours']} node-hours"]
    if cost["gpu_hours"] is not None:
        words.append(f"{cost['gpu_hours']} GPU-hours")
    if cost.get("jobs_this_week") is not None:
        words.append(f"{cost['jobs_this_week']} jobs hit by the same cause in the week before")
    return words


def _closer(answer: dict[str, Any]) -> list[str]:
    first = answer["first"]
    words = [
        f"necroscope diagnose RECORDING --at {answer['chain'][0]['time']} (on {first['node']})"
    ]
    if answer["origin"]:
        words.append(f"act on: {answer['origin']}")
    return words


def _length(job: dict[str, Any]) -> str:
    return format_duration(parse_moment_ns(job["to"], 0) - parse_moment_ns(job["from"], 0))
