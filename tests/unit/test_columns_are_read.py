"""Everything that is recorded is read: each column of each table has a module that uses it.

A module uses a column if it has the names of both, the table's and the column's, among its words.
Columns whose names are put together, and those that a reader takes whole, are listed with the
module that does so.
"""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import necroscope
from necroscope.model.tables import TABLES

SOURCE = Path(necroscope.__file__).parent
READERS = ("analysis", "views", "outlets", "store", "fleet", "interchange/writers", "treat")
# The module that reads a column under a name that it puts together, or with all others of the table.
TAKEN_WHOLE = {
    ("cores", r"\w+_ns"): "store/core_modes.py",
    ("core_minutes", r"(mean|worst)_\w+"): "store/core_modes.py",
    ("tasks", r"\w+"): "views/web/app.py",
    ("softirqs", r"\w+"): "analysis/softirq_episodes.py",
    ("memory", r"\w+"): "views/web/counters_answer.py",
    ("network", r"\w+"): "views/web/counters_answer.py",
}
# In the recording for whoever opens its tables; each with the reason why no answer shows it.
FOR_EXPERTS = {
    ("anchors", "log_clock_ns"): "log lines are dated by it when they are recorded",
    ("cgroup_ledger", "level"): "the path has it too",
    ("containers", "qos"): "the class in which a kubelet put the pod",
    ("late_beats", "stack"): "the wait that explains it has one; this is for what nothing explains",
    ("log", "facility"): "what is not the kernel's own is marked in `events`",
    ("run_delay", "count"): "the sum of the histogram, which the metrics read",
    ("run_delay", "worst_ns"): "`waits` has the long ones with who was in the way",
    ("runqueue", "slices"): "how often the thread ran; its delay says whether it waited",
    ("anchors", "monotonic_ns"): "what other clocks are laid against",
    ("containers", "finished_ns"): "its event `container_die` has the time",
    ("containers", "oom_killed"): "its event `container_oom` says it",
    ("softnet", "flow_limit"): "packets of one flow left out under load, of nodes that set it",
    ("softnet", "received_rps"): "how often another core was asked to take packets",
    ("units", "main_pid"): "`tasks` and `samples` have the cgroup, which names the unit",
    ("units", "next_ns"): "when a timer is due next",
    ("units", "load_state"): "`active_state` and `result` say what is wrong with a unit",
}


@cache
def words() -> dict[str, frozenset[str]]:
    found = {}
    for part in READERS:
        for path in sorted((SOURCE / part).rglob("*.py")):
            found[str(path.relative_to(SOURCE))] = frozenset(_words(path))
    return found


def _words(path: Path) -> set[str]:
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            found |= set(re.findall(r"\w+", node.value))
        elif isinstance(node, ast.Attribute):
            found.add(node.attr)
    return found


@pytest.mark.parametrize("table", sorted(TABLES))
def test_every_column_is_used_by_an_answer(table: str) -> None:
    unread = []
    for column in TABLES[table].columns:
        whole = any(
            table == of and re.fullmatch(pattern, column.name) for of, pattern in TAKEN_WHOLE
        )
        used = any(table in each and column.name in each for each in words().values())
        if not (whole or used or (table, column.name) in FOR_EXPERTS):
            unread.append(column.name)
    assert not unread, f"recorded and read by no answer: {table}.{unread}"


@pytest.mark.parametrize("key", TAKEN_WHOLE)
def test_what_takes_a_table_whole_still_names_it(key: tuple[str, str]) -> None:
    assert key[0] in words()[TAKEN_WHOLE[key]]


@pytest.mark.parametrize("key", FOR_EXPERTS)
def test_what_no_answer_shows_is_a_column(key: tuple[str, str]) -> None:
    table, column = key
    assert column in {one.name for one in TABLES[table].columns}
    assert not any(table in each and column in each for each in words().values()), "it is shown now"
