"""Samples weighed by functions, tasks and paths."""

from tests.drawn_node import HZ, at, drawn_node

from necroscope.analysis.functions import FunctionNames, bare, functions
from necroscope.analysis.stacks import INTERRUPT, Stacks, stacks_of
from necroscope.model.units import NS_PER_S
from necroscope.stacks.samples import sample_period_ns

PICTURE = """
    core 0:  kkkkkkkkkk
    core 1:  ..........
    k: system  agent[5]  /a.slice/agent.service  main, Read > ksys_read, vfs_read, walk, step
    k: system  agent[5]  /a.slice/agent.service  main, Stat > ksys_stat, vfs_stat
    k: user  other[6]  /  main, compute
    k: softirq  agent[5]  /a.slice/agent.service  main > asm_sysvec_apic_timer_interrupt, handle_softirqs, net_rx_action
"""
WALK = functions("walk")


def stacks(picture: str = PICTURE) -> Stacks:
    node = drawn_node(picture)
    whole = stacks_of(node.samples(at(0), at(10)), FunctionNames(), 20.0, 1 / HZ)
    return whole.where([0], [(at(0), at(10))])


def close(one: float, other: float) -> bool:
    return abs(one - other) < 0.02


def test_a_group_counts_wherever_it_is_in_the_stack() -> None:
    assert close(stacks().share(WALK), 0.25)
    assert stacks().self_share(WALK) == 0
    assert close(stacks().self_share(functions("step")), 0.25)


def test_a_group_may_be_asked_for_below_another() -> None:
    assert close(stacks().share(functions("step"), inside=functions("vfs_read")), 0.25)
    assert stacks().share(functions("step"), inside=functions("vfs_stat")) == 0


def test_a_user_function_of_the_same_name_is_not_the_kernels() -> None:
    assert stacks().share(functions("compute")) == 0
    assert close(stacks().share(functions("compute", is_user=True)), 0.25)


def test_shares_of_time_count_idle_time() -> None:
    found = stacks()
    assert close(found.time_share(WALK), 0.25)
    assert close(found.where([0, 1], [(at(0), at(10))]).time_share(WALK), 0.125)


def test_tasks_are_programs_with_their_cgroup() -> None:
    first, second = stacks().tasks()
    assert (first.comm, first.pid, first.cgroup) == ("agent", 5, "/a.slice/agent.service")
    assert close(first.share, 0.75)
    assert second.comm == "other"


def of_pool(legend: str) -> Stacks:
    node = drawn_node(f"core 0: kkkkkkkkkk\n{legend}")
    return stacks_of(node.samples(at(0), at(10)), FunctionNames(), 10.0, 1 / HZ)


def test_threads_with_names_of_their_own_are_one_process() -> None:
    pool = "\n".join(f"k: system  worker-{number}[5]  /a  main > step" for number in range(16))
    found = of_pool(f"{pool}\nk: system  worker-3[5]  /a  main > step\nk: user  other[6]  /  main")
    first, second = found.tasks()
    assert (first.comm, first.pid, second.comm) == ("worker-3", 5, "other")
    assert close(first.share, 17 / 18)
    assert found.of_task("worker-7", "/a", 5).total == first.weight
    assert found.of_task("worker-7", "/a").total < first.weight / 10


def test_processes_are_taken_together_by_the_name_that_most_of_each_has() -> None:
    loop = [
        f"k: system  {comm}[{pid}]  /a  main > step"
        for pid in range(100, 110)
        for comm in ("sh", "probe", "probe")
    ]
    (only,) = of_pool("\n".join(loop)).tasks()
    assert (only.comm, only.pid, only.share) == ("probe", None, 1.0)


def test_the_idle_task_is_one_by_core() -> None:
    found = of_pool(
        "k: softirq  swapper/0[0]  /  main > step\nk: softirq  swapper/1[0]  /  main > step"
    ).tasks()
    assert [task.comm for task in found] == ["swapper/0", "swapper/1"]


def test_an_interrupt_is_not_the_work_of_the_task_it_interrupts() -> None:
    assert close(stacks().without(INTERRUPT).total / stacks().total, 0.75)


def test_the_main_path_goes_from_the_outermost_function_inward() -> None:
    assert stacks().path(WALK) == ("main", "Read", "ksys_read", "vfs_read", "walk", "step")


def test_functions_without_a_name_are_not_on_the_main_path() -> None:
    astray = "k: user  tool[7]  /  [unknown], compute"
    assert stacks(f"core 0: kkkkkkkkkk\n{astray}").path() == ("compute",)


def test_callers_of_a_group_are_named() -> None:
    assert stacks().callers(functions("walk step"))[0][0] == "vfs_read"


def test_stretches_select_samples_and_time() -> None:
    half = stacks().where([0], [(at(0), at(5))])
    assert half.elapsed_s == 5
    assert close(half.total / stacks().total, 0.5)


def test_the_sampling_period_is_that_of_a_busy_core() -> None:
    samples = stacks().samples
    assert close(sample_period_ns(samples.time_ns, samples.cpu) / NS_PER_S, 1 / HZ)


def test_names_are_bare_of_what_compilers_append() -> None:
    assert bare("shrink_node.constprop.0.isra.0") == "shrink_node"
    assert bare("std::sys.rs") == "std::sys.rs"
    assert "walk.cold" in WALK
    assert "walker" not in WALK
    assert "css_next_child" in functions("css_next_*")
