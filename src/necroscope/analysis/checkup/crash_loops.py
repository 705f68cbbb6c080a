"""Does a unit or a container start and die again and again? An unused one that does is easily
overlooked for months.

The count of restarts is of a container's whole life: one that has been running since is well. One
that is removed and re-created each time has no count: the daemon's events of the last minutes tell.
"""

from dataclasses import replace
from typing import Final

from necroscope.analysis.checkup.finding import Finding, Level, NamedRow, NodeSnapshot, number
from necroscope.analysis.pod_chain import pod_maker
from necroscope.analysis.recreations import RecreationLoop, find_loops
from necroscope.model.units import NS_PER_S

QUESTION: Final = "crash-loop"
MANY_RESTARTS: Final = 5
# Twice the longest that a kubelet waits before it starts a container again.
RECENT_NS: Final = 600 * NS_PER_S
# A loop whose last turn is this long ago may have been in a slow one.
_SOON_NS: Final = 20 * NS_PER_S
_DEAD_STATES: Final = frozenset({"exited", "dead", "stopped", "created"})


def examine(node: NodeSnapshot) -> list[Finding]:
    units = _looping_units(node)
    containers = [
        row
        for row in node.newest("containers", "container", "name")
        if _is_looping_container(row, node.now_ns)
    ]
    return [
        *(_of_unit(row, node) for row in units),
        *(_of_container(row, node) for row in containers),
        *(_of_recreation(loop, node) for loop in recreated(node)),
    ]


def is_going_on(loop: RecreationLoop, now_ns: int) -> bool:
    """Whether the next container can be waited for."""
    return now_ns - loop.last_ns <= max(_SOON_NS, 3 * loop.period_ns)


def units_to_ask(node: NodeSnapshot) -> list[str]:
    """Those whose own log may say why they, or their containers, die."""
    own = [str(row["unit"]) for row in _looping_units(node)]
    return list(dict.fromkeys([*own, *(loop.unit for loop in recreated(node) if loop.unit)]))


def _looping_units(node: NodeSnapshot) -> list[NamedRow]:
    return [row for row in node.newest("units", "unit") if _is_looping_unit(row)]


def _quote_log(name: str, node: NodeSnapshot) -> list[str]:
    return [f"its log: {line}" for line in node.own_logs.get(name, ())]


def recreated(node: NodeSnapshot) -> list[RecreationLoop]:
    """Containers that die and come again under a new id, and still do."""
    return [
        _with_maker(loop, node.makers.get(loop.title))
        for loop in find_loops(node.rows("events"))
        if loop.is_failing and node.now_ns - loop.last_ns <= max(RECENT_NS, 3 * loop.period_ns)
    ]


def _with_maker(loop: RecreationLoop, maker: tuple[str, str] | None) -> RecreationLoop:
    if maker is None or loop.unit is not None:
        return loop
    return replace(loop, unit=maker[0], known_by=maker[1])


def _is_looping_unit(row: NamedRow) -> bool:
    gave_up = row["result"] == "start-limit-hit"
    waits = row["sub_state"] == "auto-restart"
    return gave_up or (
        number(row["restarts"]) >= MANY_RESTARTS
        and (waits or row["result"] not in (None, "success"))
    )


def _is_looping_container(row: NamedRow, now_ns: int) -> bool:
    if number(row["restarts"]) < MANY_RESTARTS or row["state"] == "gone":
        return False
    if row["state"] == "restarting":
        return True
    if row["state"] in _DEAD_STATES and row["exit_code"] is not None:
        return row["exit_code"] != 0
    # It runs, or how it ended is unknown.
    return row["started_ns"] is not None and now_ns - number(row["started_ns"]) <= RECENT_NS


def _of_unit(row: NamedRow, node: NodeSnapshot) -> Finding:
    unit = row["unit"]
    result = f"result {row['result']}, status {row['main_status']}, unit file {row['file_state']}"
    title = f"{unit} crash-loops: {number(row['restarts']):,} restarts, now {row['sub_state']}"
    return Finding(
        QUESTION,
        Level.PROBLEM,
        title,
        (result, *_quote_log(str(unit), node)),
        f"journalctl -u {unit}; unused? systemctl disable --now {unit}",
    )


def _of_container(row: NamedRow, node: NodeSnapshot) -> Finding:
    name = "/".join(
        str(part)
        for part in (row["namespace"], row["pod"], row["name"] or row["container"])
        if part
    )
    facts = [f"exit code {row['exit_code']}, image {row['image']}, by {row['runtime']}"]
    title = f"container {name} crash-loops: {number(row['restarts']):,} restarts"
    if not row["pod"]:
        return Finding(QUESTION, Level.PROBLEM, title, tuple(facts))
    uid = str(row["pod_uid"]) if row["pod_uid"] else None
    maker = pod_maker(str(row["namespace"]), str(row["pod"]), uid, node.rows("events"))
    made_by = maker.describe()
    facts += [made_by] if made_by else []
    return Finding(QUESTION, Level.PROBLEM, title, tuple(facts), maker.hint())


def _of_recreation(loop: RecreationLoop, node: NodeSnapshot) -> Finding:
    """The hint acts on the unit: a container that is removed comes back."""
    end = loop.describe_end()
    facts = [f"{end}, image {loop.image}" if end else f"image {loop.image}"]
    facts += _quote_log(loop.title, node)
    if loop.unit is None:
        facts.append("no restart counter rises; who makes it was not seen")
        hint = f"what starts it? look for {loop.title} in the files of units and in crontabs"
        return Finding(QUESTION, Level.PROBLEM, _recreation_title(loop), tuple(facts), hint)
    facts.append(f"made by {loop.unit}: {loop.known_by}")
    row = next((row for row in node.newest("units", "unit") if row["unit"] == loop.unit), None)
    if row is not None and row["fragment"]:
        facts.append(f"unit file {row['fragment']}, {row['file_state']}, preset {row['preset']}")
    facts += [f"the unit's log: {line}" for line in node.own_logs.get(loop.unit, ())]
    hint = f"journalctl -u {loop.unit}; unused? systemctl disable --now {loop.unit}"
    return Finding(QUESTION, Level.PROBLEM, _recreation_title(loop), tuple(facts), hint)


def _recreation_title(loop: RecreationLoop) -> str:
    return f"container {loop.title} crash-loops: {loop.describe()}"
