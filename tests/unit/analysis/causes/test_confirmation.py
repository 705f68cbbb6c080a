"""What was not recorded confirms nothing: a cause whose counters are missing is an alternative at
most.
"""

import pytest
from tests.drawn_node import drawn_node

from necroscope.analysis.engine import diagnose

PATHS = {
    "page-fault-storm": (
        "memset > asm_exc_page_fault, exc_page_fault, handle_mm_fault, clear_page_erms"
    ),
    "kswapd-reclaim": "> kthread, kswapd, balance_pgdat, shrink_node",
    "direct-reclaim": "read > __alloc_pages_slowpath, try_to_free_pages, shrink_node",
    "compaction-stall": "memset > __alloc_pages_direct_compact, try_to_compact_pages, compact_zone",
    "tlb-shootdown": "munmap > do_vmi_munmap, flush_tlb_mm_range, smp_call_function_many_cond",
    "dentry-walk": "rmdir > do_rmdir, shrink_dcache_parent, d_walk, select_collect",
    "zombie-memcg-walk": "read > ksys_read, memcg_stat_show, mem_cgroup_iter",
}


@pytest.mark.parametrize("slug", PATHS)
def test_without_its_counters_a_cause_is_not_named(slug: str) -> None:
    node = drawn_node(f"""
        core 0:  ..............................
        core 1:  ...............xxxxxxxx.......
        x: system  worker[600]  /pods/d  {PATHS[slug]}
        """)
    (incident,) = diagnose(node).incidents
    assert incident.verdict.cause == "unknown"
    assert slug in [other.cause for other in incident.alternatives]
