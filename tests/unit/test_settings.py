"""Settings: one table, its defaults, and what is said of values that make no sense."""

from pathlib import Path

import pytest

from necroscope.errors import UsageError
from necroscope.model.definitions import LONGEST_SEGMENT_NS
from necroscope.model.units import NS_PER_S
from necroscope.settings import SETTINGS, parse, read_file

UNITS = ("duration", "bytes", "hertz", "percent", "count", "switch", "text")


def test_the_defaults_are_those_of_the_design() -> None:
    settings = parse({})
    assert settings.hz == 97
    assert settings.tick_ns == NS_PER_S
    assert settings.segment_ns == 300 * NS_PER_S
    assert settings.max_bytes == 4 << 30
    assert settings.max_age_ns == 7 * 86400 * NS_PER_S
    assert settings.pin_bytes == 1 << 30
    assert (settings.pin_before_ns, settings.pin_after_ns) == (300 * NS_PER_S, 120 * NS_PER_S)
    assert settings.free_floor_ratio == 0.15
    assert settings.budget_ratio == 0.05
    assert settings.host_root == Path("/")
    assert settings.patterns is None
    assert (settings.units_ns, settings.containers_ns, settings.facts_ns) == (
        10 * NS_PER_S,
        10 * NS_PER_S,
        3600 * NS_PER_S,
    )
    assert not settings.is_cloud_metadata_asked
    assert (settings.ray_root, settings.ray_dashboard) == ("/tmp/ray", None)


def test_sources_beside_the_kernel_can_be_switched_off_and_on() -> None:
    settings = parse(
        {"units": "0s", "containers": "0s", "facts": "0s", "ray-root": "", "cloud-metadata": "on"}
    )
    assert (settings.units_ns, settings.containers_ns, settings.facts_ns, settings.ray_root) == (
        0,
        0,
        0,
        None,
    )
    assert settings.is_cloud_metadata_asked


def test_every_setting_says_what_it_is_for_and_is_named_once() -> None:
    assert len({setting.name for setting in SETTINGS}) == len(SETTINGS)
    assert all(setting.help and setting.unit in UNITS for setting in SETTINGS)


def test_given_values_replace_defaults() -> None:
    settings = parse(
        {"hz": "997", "tick": "100ms", "host-root": "/host", "patterns": "/etc/patterns.toml"}
    )
    assert (settings.hz, settings.tick_ns) == (997, NS_PER_S // 10)
    assert (settings.host_root, settings.patterns) == (Path("/host"), Path("/etc/patterns.toml"))


def test_an_unknown_setting_is_refused_and_the_known_ones_are_listed() -> None:
    with pytest.raises(UsageError) as caught:
        parse({"herz": "97"})
    assert "herz" in caught.value.facts
    assert all(setting.name in caught.value.hint for setting in SETTINGS)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hz", "0"),
        ("hz", "10001"),
        ("tick", "99ms"),
        ("tick", "11s"),
        ("segment", "4s"),
        ("flush", "2m"),
        ("max-bytes", "1000"),
        ("max-age", "1s"),
        ("pin-before", "2d"),
        ("free-floor", "91"),
        ("budget", "0"),
        ("budget", "101"),
        ("units", "2h"),
        ("containers", "2h"),
        ("facts", "2d"),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(name: str, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse({name: text})
    assert name in caught.value.facts
    assert "out of range" in caught.value.facts


@pytest.mark.parametrize(
    ("name", "text", "allowed"),
    [
        ("segment", "4s", "5s to 1h"),
        ("flush", "2m", "100ms to 1m"),
        ("max-bytes", "1000", "1MiB to 1024TiB"),
        ("hz", "0", "1 to 10000"),
    ],
)
def test_a_value_out_of_range_is_reported_what_would_be_in_it(
    name: str, text: str, allowed: str
) -> None:
    with pytest.raises(UsageError) as caught:
        parse({name: text})
    assert caught.value.hint.startswith(allowed)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("hz", "many"),
        ("hz", "-1"),
        ("hz", "9.7"),
        ("hz", "9" * 5000),
        ("tick", "1"),
        ("max-bytes", "lots"),
        ("budget", "5%"),
        ("hz", ""),
        ("cloud-metadata", "yes"),
        ("units", "often"),
    ],
)
def test_a_value_that_cannot_be_read_is_refused_by_name_with_a_hint(name: str, text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse({name: text})
    assert f"setting {name}" in caught.value.facts
    assert caught.value.hint


def test_a_file_gives_texts_by_name_and_leaves_labels_alone(tmp_path: Path) -> None:
    path = tmp_path / "necroscope.toml"
    path.write_text('hz = 49\nmax-bytes = "1GiB"\n[labels]\nzone = "a"\n')
    values = read_file(path)
    assert values == {"hz": "49", "max-bytes": "1GiB"}
    assert parse(values).hz == 49


@pytest.mark.parametrize("content", [b"hz = ", b"hz 97", b"\xff\xfe", b"hz = 1\nhz = 2"])
def test_a_file_that_is_no_toml_is_a_usage_error_that_names_it(
    tmp_path: Path, content: bytes
) -> None:
    path = tmp_path / "bad.toml"
    path.write_bytes(content)
    with pytest.raises(UsageError) as caught:
        read_file(path)
    assert str(path) in caught.value.facts
    assert caught.value.hint


@pytest.mark.parametrize("content", ["hz = true", "hz = [97]", "hz = 97.0", "tick = 2026-04-15"])
def test_a_value_of_the_wrong_kind_is_a_usage_error(tmp_path: Path, content: str) -> None:
    path = tmp_path / "wrong.toml"
    path.write_text(content)
    with pytest.raises(UsageError):
        parse(read_file(path))


def test_a_file_that_is_not_there_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read settings file"):
        read_file(tmp_path / "none.toml")
    with pytest.raises(UsageError, match="cannot read settings file"):
        read_file(tmp_path)


def test_the_longest_segment_is_the_one_that_readers_look_back_for() -> None:
    assert parse({"segment": "1h"}).segment_ns == LONGEST_SEGMENT_NS
    with pytest.raises(UsageError, match="out of range"):
        parse({"segment": "61m"})


def test_the_default_of_each_setting_is_within_its_range() -> None:
    for setting in SETTINGS:
        setting.value(setting.default)
        assert bool(setting.low) == bool(setting.high)
