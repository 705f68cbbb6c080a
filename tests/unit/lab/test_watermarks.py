"""Scarcity that is only a setting: high enough to be felt, never so high that memory could run
out.
"""

from necroscope.lab.watermarks import Zone, cache_kb, parse_zone, safe_min_kb, wanted_min_kb

GIB_KB = 1 << 20
ZONEINFO = """\
Node 0, zone    DMA32
  pages free     772497
        min      2811
        managed  772497
Node 0, zone   Normal
  pages free     4194304
        min      14000
        managed  5242880
Node 0, zone  Movable
  pages free     0
        managed  0
"""


def test_the_zone_is_the_highest_that_has_memory() -> None:
    zone = parse_zone(ZONEINFO)
    assert zone.free_kb == 16 * GIB_KB
    assert 0.87 < zone.share < 0.88


def test_for_kswapd_all_that_is_free_lies_between_min_and_low() -> None:
    zone = Zone(16 * GIB_KB, 0.8)
    min_of_zone = wanted_min_kb("kswapd", zone) * zone.share
    assert min_of_zone < zone.free_kb < 1.25 * min_of_zone


def test_for_direct_reclaim_all_that_is_free_lies_below_min() -> None:
    zone = Zone(16 * GIB_KB, 0.8)
    assert wanted_min_kb("direct", zone) * zone.share > zone.free_kb


def test_min_stays_a_gib_below_what_giving_back_all_caches_would_free() -> None:
    zone = Zone(16 * GIB_KB, 1.0)
    assert safe_min_kb(zone, 3 * GIB_KB) == 18 * GIB_KB
    assert safe_min_kb(zone, 0) == 15 * GIB_KB
    assert safe_min_kb(Zone(0, 1.0), 0) > 0


def test_caches_are_those_of_files() -> None:
    assert (
        cache_kb(
            "MemFree: 5 kB\nActive(anon): 9 kB\nActive(file):   30 kB\nInactive(file): 12 kB\n"
        )
        == 42
    )
