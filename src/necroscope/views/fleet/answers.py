"""Answers of `fleet nodes`, `incidents`, `change` and `diff` as text."""

from typing import Any, Final

from necroscope.model.units import format_duration
from necroscope.views.fleet.paragraphs import WIDTH, items, left_out, paragraph, table
from necroscope.views.format import MISSING

_MOST_NODES: Final = 50
_MOST_INCIDENTS: Final = 30
_MOST_JOBS: Final = 15
_MOST_DIFFERENCES: Final = 40
_MOST_RECORDED: Final = 200
# Of groups: what differs more often by chance is listed in JSON only.
_RARE: Final = 0.05
_ABSENT: Final = "(not there)"
_MOST_LABELS: Final = 4


def nodes_to_text(answer: dict[str, Any], width: int = WIDTH, most: int = _MOST_NODES) -> str:
    states = (("silent", "silent"), ("clocks_off", "with a clock that is off"))
    counts = "".join(f", {answer[name]} {words}" for name, words in states if answer[name])
    head = f"{answer['count']} nodes{counts}, {answer['from'][:16]} to {answer['to'][:16]} UTC"
    events = (
        ", ".join(f"{kind} {times}" for kind, times in list(answer["events"].items())[:8]) or "none"
    )
    lines = [*paragraph(head, width), *paragraph(f"events: {events}", width), ""]
    labels = answer["labels"][:_MOST_LABELS]
    rows = [_node_row(node, labels) for node in answer["nodes"][:most]]
    if rows:
        lines += table(
            ("node", *labels, "cores", "last seen", "events", "incidents", "last cause", ""), rows
        )
    if answer["count"] > most:
        lines.append(f"and {answer['count'] - most} more, see --json or choose with --where")
    return "\n".join(lines)


def _node_row(node: dict[str, Any], labels: list[str]) -> tuple[object, ...]:
    notes = ["silent"] if node["is_silent"] else []
    notes += [_clock(node["clock_offset_ns"])] if node["is_clock_off"] else []
    return (
        node["node"],
        *(node["labels"].get(label, MISSING) for label in labels),
        node["cpus"] if node["cpus"] is not None else MISSING,
        (node["last_seen"] or MISSING)[:19].replace("T", " "),
        sum(node["events"].values()),
        node["incidents"],
        node["last_cause"] or MISSING,
        ", ".join(notes),
    )


def _clock(offset_ns: int) -> str:
    return (
        f"clock off by {format_duration(abs(offset_ns))} ({'behind' if offset_ns > 0 else 'ahead'})"
    )


def incidents_to_text(
    answer: dict[str, Any], width: int = WIDTH, most: int = _MOST_INCIDENTS
) -> str:
    head = f"{answer['count']} incidents, {answer['from'][:16]} to {answer['to'][:16]} UTC"
    lines = [*paragraph(head, width), ""]
    if not answer["count"]:
        return "\n".join(lines).rstrip()
    causes = [(each["incidents"], each["nodes"], each["cause"]) for each in answer["causes"][:10]]
    lines += [*table(("incidents", "nodes", "cause"), causes, frozenset({0, 1})), ""]
    lines += table(
        ("from", "node", "core", "cause", "sure", "who", "act on"),
        [_incident_row(each) for each in answer["incidents"][:most]],
    )
    if answer["count"] > most:
        lines.append(f"and {answer['count'] - most} more, see --json")
    return "\n".join(lines)


def _incident_row(incident: dict[str, Any]) -> tuple[object, ...]:
    origin = (
        f"{incident['origin_kind']} {incident['origin_name']}"
        if incident["origin_name"]
        else MISSING
    )
    return (
        incident["from"][:19].replace("T", " "),
        incident["node"],
        MISSING if incident["core"] is None else incident["core"],
        incident["cause"],
        f"{incident['confidence']:.0%}",
        incident["culprit_comm"] or MISSING,
        origin,
    )


def change_to_text(answer: dict[str, Any], width: int = WIDTH) -> str:
    lines = [*paragraph(answer["summary"], width), ""]
    lines += paragraph(
        f"changed from {answer['first_change'][:16]} to {answer['last_change'][:16]} UTC", width
    )
    if answer["about"] is not None:
        lines += ["", *_rates(answer)]
        chance = answer["changed"]["chance"]
        if chance is not None:
            words = f"as few, or fewer, would come about by chance with probability {chance:.1e}"
            burst = answer["changed"]["burst"]
            words += (
                f"; they come in bursts of about {burst:.1f}, and are counted so"
                if burst > 1.05
                else ""
            )
            lines += items("how sure", [words], width)
    if answer["jobs"]:
        rows = [_job(each) for each in answer["jobs"][:_MOST_JOBS]]
        lines += ["", *table(("", "job", "before", "95 %", "after", "95 %"), rows)]
    lines += items("numbers", [each["words"] for each in answer["gauges"]], width)
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


def diff_to_text(answer: dict[str, Any], width: int = WIDTH, most: int = _MOST_DIFFERENCES) -> str:
    a, b = answer["a"], answer["b"]
    head = (
        f"A: {a['name']} ({a['nodes']} nodes), B: {b['name']} ({b['nodes']} nodes), of"
        f" {answer['nodes']} nodes"
    )
    count = answer["count"]
    rare = [
        each
        for each in answer["differences"]
        if a["nodes"] + b["nodes"] == 2 or each["rarity"] <= _RARE
    ]
    lines = [
        *paragraph(head, width),
        f"{count} facts differ, {answer['same']} are the same; the rarest difference first",
        "",
    ]
    if rare:
        rows = [
            (
                f"{each['rarity']:.1e}",
                f"{each['kind']} {each['name']}",
                _values(each["a"]),
                _values(each["b"]),
            )
            for each in rare[:most]
        ]
        lines += table(("rarity", "fact", "A", "B"), rows, frozenset({0}))
    if count > len(rare[:most]):
        lines.append(
            f"and {count - len(rare[:most])} more, most of them no rarer than chance would have it:"
            " see --json"
        )
    return "\n".join([*lines, *items("left out (shown with --all)", left_out(answer), width)])


def recording_diff_to_text(answer: dict[str, Any], width: int = WIDTH) -> str:
    """Of two recordings there is no fleet that tells what is rare: by kind and name."""
    a, b = answer["a"]["name"], answer["b"]["name"]
    lines = [
        *paragraph(f"A: {a}, B: {b}", width),
        f"{answer['count']} facts differ, {answer['same']} are the same",
        "",
    ]
    shown = answer["differences"][:_MOST_RECORDED]
    rows = [
        (f"{each['kind']} {each['name']}", _values(each["a"]), _values(each["b"])) for each in shown
    ]
    lines += table(("fact", "A", "B"), rows) if rows else []
    more = answer["count"] - len(shown)
    lines += [f"and {more} more, see --json"] if more else []
    return "\n".join([*lines, *items("left out (shown with --all)", left_out(answer), width)])


def _values(values: list[dict[str, Any]]) -> str:
    """`enabled 97 %, disabled 3 %`; one value stands alone."""
    if len(values) == 1:
        return _value(values[0]["value"])
    return ", ".join(f"{_value(each['value'])} {each['share']:.0%}" for each in values[:3])


def _value(value: str | None) -> str:
    return _ABSENT if value is None else value
