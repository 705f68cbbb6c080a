"""Processes that only begin and end: many of them, and their parent is the culprit."""

from tests.drawn_node import DrawnNode, drawn_node

from necroscope.analysis.engine import diagnose

CORES = """
    core 0:  ..............................
    core 1:  ...............abcdefgh.......
"""
LIVES = ("_start > load_elf_binary", "_exit > do_exit, exit_mmap", "main > bprm_execve")
PARENT = (
    "system  agent[190]  /system.slice/agent.service  fork > kernel_clone, copy_process,"
    " copy_page_range"
)


def churning(children: int) -> DrawnNode:
    """A letter is a second; in each the parent forks and other children live and end."""
    lines = []
    for place, letter in enumerate("abcdefgh"):
        lines += [f"{letter}: {PARENT}"] * max(1, children // 2)
        lines += [
            f"{letter}: system  du[{1000 * (place + 1) + number}]  /system.slice/agent.service "
            f" {LIVES[number % 3]}"
            for number in range(children)
        ]
    return drawn_node(CORES + "\n".join(lines))


def test_the_parent_of_many_short_processes_is_named() -> None:
    (incident,) = diagnose(churning(20)).incidents
    assert (incident.core, incident.verdict.cause) == (1, "fork-exec-churn")
    assert incident.verdict.culprit is not None
    assert (incident.verdict.culprit.comm, incident.verdict.culprit.unit) == (
        "agent",
        "agent.service",
    )


def test_a_few_processes_are_no_churn() -> None:
    assert "fork-exec-churn" not in [one.verdict.cause for one in diagnose(churning(2)).incidents]


def test_the_end_of_one_large_process_is_no_churn() -> None:
    picture = (
        CORES.replace("abcdefgh", "aaaaaaaa")
        + "a: system  loader[9]  /pods/a  _exit > do_exit, exit_mmap, unmap_page_range"
    )
    assert "fork-exec-churn" not in [
        one.verdict.cause for one in diagnose(drawn_node(picture)).incidents
    ]


def test_a_moment_of_it_is_no_incident() -> None:
    node = churning(40)
    node.cores[1] = node.cores[1].replace("abcdefgh", "ab......")
    assert not diagnose(node).incidents


def test_processes_that_stay_are_no_churn_however_many() -> None:
    lines = [f"a: system  pool[{500 + number}]  /jobs  {LIVES[number % 3]}" for number in range(50)]
    node = drawn_node(CORES.replace("abcdefgh", "aaaaa...") + "\n".join(lines))
    assert "fork-exec-churn" not in [one.verdict.cause for one in diagnose(node).incidents]
