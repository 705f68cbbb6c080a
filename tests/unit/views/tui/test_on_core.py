"""Who is on a core, counted from samples."""

from typing import Any

from necroscope.views.tui.on_core import functions_of, tasks_by_cpu


def test_the_task_with_most_samples_comes_first_with_its_commonest_function(node: Any) -> None:
    node.sample(1, 0, "kubelet", 7, kernel="memcg_stat_show", times=5)
    node.sample(1, 0, "kubelet", 7, kernel="seq_printf", times=2)
    node.sample(1, 0, "python3", 8, user="eval", times=3)
    first, second = tasks_by_cpu(node.samples, 3)[0]
    assert (first.comm, first.pid, first.share, first.function, first.in_kernel) == (
        "kubelet",
        7,
        0.7,
        "memcg_stat_show",
        True,
    )
    assert (second.comm, second.function, second.in_kernel) == ("python3", "eval", False)


def test_a_sample_in_the_kernel_counts_for_the_kernel_function_not_for_its_caller(
    node: Any,
) -> None:
    node.sample(1, 0, "kubelet", kernel="memcg_stat_show", user="Read")
    assert [(one.name, one.in_kernel) for one in functions_of(node.samples, 5)] == [
        ("memcg_stat_show", True)
    ]


def test_code_without_a_symbol_is_unnamed_but_counted(node: Any) -> None:
    node.sample(1, 0, "jit", times=3)
    node.sample(1, 0, "jit", user="known")
    assert [(one.name, one.share) for one in functions_of(node.samples, 5)] == [("known", 0.25)]
    assert tasks_by_cpu(node.samples, 1)[0][0].function is None


def test_cores_are_counted_apart(node: Any) -> None:
    node.sample(1, 0, "a")
    node.sample(1, 3, "b", cgroup=None)
    found = tasks_by_cpu(node.samples, 3)
    assert {cpu: tasks[0].comm for cpu, tasks in found.items()} == {0: "a", 3: "b"}
    assert found[3][0].cgroup is None
