"""The answer of `fleet why` as a page that a tired engineer understands."""

from collections.abc import Iterator
from typing import Any, Final

from necroscope.views.fleet.paragraphs import WIDTH, items, left_out, names, paragraph, plain, table

Json = dict[str, Any]
_MOST_LEADERS: Final = 6
_MEANING: Final = {
    "first": "leads",
    "proxy": "only a proxy",
    "inseparable": "not excluded",
    "of its own": "also matters",
    "no verdict names it": "not named",
}


def why_to_text(answer: Json, width: int = WIDTH) -> str:
    return "\n".join(
        [*_head(answer, width), *_leaders(answer, width), *_rest(answer, width)]
    ).rstrip()


def _head(answer: Json, width: int) -> Iterator[str]:
    about = answer["about"]
    where = f", of nodes where {answer['where']}" if answer["where"] else ""
    yield from paragraph(
        f"why {about['name']}? {answer['from'][:16]} to {answer['to'][:16]} UTC{where}", width
    )
    yield from paragraph(
        f"{answer['affected']} of {answer['nodes']} nodes were affected, {answer['times']} times",
        width,
    )
    yield ""
    yield from paragraph(answer["summary"], width)
    if answer["dose_summary"]:
        yield ""
        yield from paragraph(answer["dose_summary"], width)


def _leaders(answer: Json, width: int) -> Iterator[str]:
    leaders = _worth_showing(answer["leaders"])
    if not leaders:
        return
    shown = leaders[:_MOST_LEADERS]
    yield ""
    rows = [_row(each) for each in shown]
    yield from table(
        ("", "affected", "with it", "affected", "without", "FDR", "difference"),
        rows,
        frozenset(range(1, 6)),
        "  ",
    )
    if len(leaders) > len(shown):
        yield f"  and {len(leaders) - len(shown)} more, see --json"
    yield from items("how sure", [leaders[0]["words"], *_rates(answer)], width)
    yield from items("how much it takes", [each["words"] for each in answer["doses"]], width)
    same = [each["text"] for each in leaders[0]["facts"][1:] + leaders[0]["places"]]
    yield from items("the same nodes also have: one difference, seen in several facts", same, width)
    yield from items("other differences", [each["words"] for each in shown[1:]], width)
    yield from _deciding(leaders, width)


def _worth_showing(leaders: list[Json]) -> list[Json]:
    """Without what says the same again: of the first's own subject, and of a place that was
    reported already.
    """
    shown: list[Json] = []
    places: set[str] = set()
    for leader in leaders:
        names_of_places = {each["name"] for each in leader["places"]}
        is_again = (
            not leader["facts"]
            and names_of_places <= places
            and leader["relation"] != "inseparable"
        )
        if leader["relation"] != "same subject" and not is_again:
            shown.append(leader)
        places |= names_of_places
    return shown


def _row(leader: Json) -> tuple[object, ...]:
    cells = leader["table"]
    with_it = cells["affected_with"] + cells["well_with"]
    without = cells["affected_without"] + cells["well_without"]
    others = len(leader["facts"]) + len(leader["places"]) - 1
    more = f" (and {others} more on the same nodes)" if others else ""
    rate = f"{leader['false_discovery']:.1e}"
    counts = cells["affected_with"], f"of {with_it}", cells["affected_without"], f"of {without}"
    return _MEANING[leader["relation"]], *counts, rate, plain(leader["name"] + more)


def _rates(answer: Json) -> list[str]:
    """Times in the time observed: a node that is hit daily differs from one that was hit once."""
    rates = answer["rates"]
    if rates is None:
        return []
    sides = [
        f"{rates[side]['per_node_day']:.2g} {words} ({rates[side]['times']} in"
        f" {rates[side]['node_days']:,.0f} node-days)"
        for side, words in (("with", "with it"), ("without", "without"))
        if rates[side]["per_node_day"] is not None
    ]
    return [f"times per node-day: {', '.join(sides)}"] if sides else []


def _deciding(leaders: list[Json], width: int) -> Iterator[str]:
    """Of the strongest place, or else the strongest rival: where the two disagree."""
    others = leaders[1:]
    against = next((each for each in others if each["places"]), others[0] if others else None)
    if against is None:
        return
    texts = []
    for key, has, lacks in (
        ("first_only", leaders[0], against),
        ("this_only", against, leaders[0]),
    ):
        nodes = against[key]
        what = f"{has['name']}, but not so that {lacks['name']}"
        for state in ("affected", "well"):
            texts += (
                [f"{what}, {state}: {names(nodes[state], nodes[f'{state}_count'])}"]
                if nodes[state]
                else []
            )
    yield from items(
        "the nodes that decide",
        texts or ["there are none: the two hold on the very same nodes"],
        width,
    )


def _rest(answer: Json, width: int) -> Iterator[str]:
    yield from items("the experiment that would decide", answer["experiments"], width)
    yield from items("left out", [*left_out(answer), *answer["notes"]], width)
    if answer["leaders"]:
        yield ""
        yield from paragraph(
            f"{answer['differences']:,} differences were asked about. Facts are taken as they stood"
            " before each affected node's first event, and of the others at the same moments. A"
            " place is never named as a cause: only what it carries can be.",
            width,
        )
