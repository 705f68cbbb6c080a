"""The story of a job as text, and a list of jobs: from a recording and from a lake alike."""

from collections.abc import Sized
from typing import Any, Final

from necroscope.model.units import format_duration, parse_moment_ns
from necroscope.views.fleet.paragraphs import WIDTH, items, paragraph, table
from necroscope.views.format import MISSING

_MOST_STEPS: Final = 16
_MOST_JOBS: Final = 40
_MOST_RATES: Final = 20
_MOST_ALIKE: Final = 5


def _count_things(things: Sized, word: str) -> str:
    return f"{len(things)} {word}{'' if len(things) == 1 else 's'}"


def _name(answer: dict[str, Any]) -> str:
    """With what Ray called its submission: that is the name that a user was given."""
    submission = (answer.get("submission") or "").rpartition("/")[2]
    return f"{answer['job']}, {submission}" if submission else str(answer["job"])


def job_to_text(answer: dict[str, Any], width: int = WIDTH) -> str:
    nodes = answer["nodes"]
    head = (
        f"{_name(answer)} ({answer['kind']}): {answer['outcome']}, {answer['from'][:19]} to"
        f" {answer['to'][:19]} UTC, {_count_things(answer['members'], 'member')} on"
        f" {_count_things(nodes, 'node')}"
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
    lines = [*paragraph(head, width), *_blames(answer, width), *_rates(answer), ""]
    rows = [_job(each) for each in answer["jobs"][:_MOST_JOBS]]
    if rows:
        lines += table(("last seen", "kind", "job", "outcome", "blame", "nodes", "ran"), rows)
    if answer["count"] > _MOST_JOBS:
        lines.append(f"and {answer['count'] - _MOST_JOBS} more, see --json")
    return "\n".join(lines).rstrip()


def _job(job: dict[str, Any]) -> tuple[object, ...]:
    """`machine, gpu-17` says where the chain leads; only a collector's answer has it."""
    blame = job.get("blame") or MISSING
    if blame == "machine" and job["node"]:
        blame += f", {job['node']}" + (f", {job['cause']}" if job["cause"] else "")
    seen = job["to"][:19].replace("T", " ")
    return seen, job["kind"], _name(job), job["outcome"], blame, len(job["nodes"]), _length(job)


def _blames(answer: dict[str, Any], width: int) -> list[str]:
    """Those of the machine first, and apart from all others."""
    blames = dict(answer.get("blames") or {})
    if not blames:
        return []
    machine = blames.pop("machine", 0)
    others = ", ".join(f"{name} {count}" for name, count in blames.items())
    text = f"of those that failed: the machine {machine}" + (f"; {others}" if others else "")
    return paragraph(text, width)


def _rates(answer: dict[str, Any]) -> list[str]:
    rates = answer.get("rates")
    if not rates:
        return []
    rows = [
        (
            each["value"] or MISSING,
            each["runs"],
            each["success"],
            f"{each['rate']:.0%}",
            f"{each['low']:.0%} to {each['high']:.0%}",
            each["by_machine"],
        )
        for each in rates[:_MOST_RATES]
    ]
    head = (answer["by"], "ended", "well", "rate", "95 %", "by the machine")
    more = [f"and {len(rates) - _MOST_RATES} more, see --json"] if len(rates) > _MOST_RATES else []
    return ["", *table(head, rows, frozenset({1, 2, 3})), *more]


def _step(step: dict[str, Any]) -> tuple[object, ...]:
    core = step["core"] if step["core"] is not None else MISSING
    return step["time"][11:23], f"±{step['error_ms']} ms", step["node"], core, step["text"]


def _cost(cost: dict[str, Any]) -> list[str]:
    words = [f"{cost['node_hours']} node-hours"]
    if cost["gpu_hours"] is not None:
        words.append(f"{cost['gpu_hours']} GPU-hours")
    if cost.get("jobs_this_week") is not None:
        words.append(
            f"{cost['jobs_this_week']} other jobs hit by the same cause in the week before"
        )
        words += [
            f"{one['job']} at {one['to'][:19]} on {one['node']}"
            for one in cost["alike"][:_MOST_ALIKE]
        ]
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
