"""Faults of one process are a storm only if what it faults in is not kept."""

from tests.drawn_node import DrawnNode, drawn_node

from necroscope.analysis.engine import diagnose

STORM = """
    core 0:  ..............................
    core 1:  ...............ffffffff.......
    f: system  worker[600]  /pods/d  memset > asm_exc_page_fault, exc_page_fault, handle_mm_fault, clear_page_erms
    f: system  worker[600]  /pods/d  madvise > do_madvise, zap_pte_range
"""
GIB = 1 << 30


def faulting(
    picture: str = STORM,
    faults: int = 200_000,
    growth_bytes: int = 0,
    usual: int = 500,
    cache_bytes: int = 0,
) -> DrawnNode:
    """`growth_bytes` per second of memory in the storm, `cache_bytes` of files all along."""
    node = drawn_node(picture)
    for second in range(1, 24):
        held = GIB + max(0, second - 15) * growth_bytes
        count = faults if second > 15 else usual
        node.add(
            "memory",
            second,
            pgfault=count,
            anon_bytes=held,
            cached_bytes=GIB + second * cache_bytes,
        )
    return node


def test_a_process_that_faults_the_same_memory_again_is_named() -> None:
    (incident,) = diagnose(faulting()).incidents
    assert (incident.core, incident.verdict.cause) == (1, "page-fault-storm")
    assert incident.verdict.culprit is not None
    assert (incident.verdict.culprit.comm, incident.verdict.culprit.cgroup) == ("worker", "/pods/d")


def test_a_program_that_loads_its_data_is_not_named() -> None:
    causes = [
        one.verdict.cause for one in diagnose(faulting(growth_bytes=200_000 * 4096)).incidents
    ]
    assert "page-fault-storm" not in causes


def test_memory_that_one_call_fills_at_once_is_not_a_storm() -> None:
    populating = STORM.replace(
        "memset > asm_exc_page_fault, exc_page_fault,",
        "madvise > do_madvise, madvise_populate, faultin_page_range, __get_user_pages,",
    )
    causes = [one.verdict.cause for one in diagnose(faulting(populating)).incidents]
    assert causes == ["unknown"]


def test_without_faults_counted_it_is_not_named() -> None:
    assert [one.verdict.cause for one in diagnose(faulting(faults=600)).incidents] == ["unknown"]


def test_faults_of_many_processes_are_no_storm_of_one() -> None:
    many = "".join(
        f"\n    f: system  sh[{pid}]  /pods/d  memset > exc_page_fault, handle_mm_fault"
        for pid in range(700, 712)
    )
    picture = "\n".join(STORM.splitlines()[:3]) + many
    assert "page-fault-storm" not in [
        one.verdict.cause for one in diagnose(faulting(picture)).incidents
    ]


def test_faults_of_many_threads_are_of_one_process() -> None:
    pool = "".join(
        f"\n    f: system  worker-{number}[600]  /pods/d  memset > exc_page_fault, handle_mm_fault"
        for number in range(16)
    )
    (incident,) = diagnose(faulting("\n".join(STORM.splitlines()[:3]) + pool)).incidents
    assert incident.verdict.cause == "page-fault-storm"
    assert incident.verdict.culprit is not None
    assert incident.verdict.culprit.pid == 600


def test_a_storm_of_one_core_is_counted_beside_the_usual_faults_of_many() -> None:
    (incident,) = diagnose(faulting(faults=270_000, usual=150_000)).incidents
    assert incident.verdict.cause == "page-fault-storm"
    causes = [
        one.verdict.cause for one in diagnose(faulting(faults=165_000, usual=150_000)).incidents
    ]
    assert causes == ["unknown"]


def test_a_cache_that_is_filled_all_along_is_not_what_is_faulted_in() -> None:
    (incident,) = diagnose(faulting(cache_bytes=GIB)).incidents
    assert incident.verdict.cause == "page-fault-storm"
    assert not incident.verdict.against


def test_a_program_that_loads_its_data_beside_a_cache_that_is_filled_is_not_named() -> None:
    node = faulting(faults=270_000, usual=150_000, growth_bytes=120_000 * 4096, cache_bytes=GIB)
    assert "page-fault-storm" not in [one.verdict.cause for one in diagnose(node).incidents]
