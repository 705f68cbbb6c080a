"""Which package brought a unit's file, and since when the unit is enabled."""

import os
from pathlib import Path

from necroscope.sources.facts.file_owners import enabled_since, packages_of


def test_a_file_belongs_to_the_package_whose_list_has_it_by_either_name(tmp_path: Path) -> None:
    info = tmp_path / "var/lib/dpkg/info"
    info.mkdir(parents=True)
    (info / "ecs-init:amd64.list").write_text("/.\n/lib/systemd/system/ecs.service\n")
    (info / "other.list").write_text("/lib/systemd/system/ecs.service.d\n")
    (info / "ecs-init.md5sums").write_text("/etc/own.service\n")
    files = ["/usr/lib/systemd/system/ecs.service", "/etc/own.service"]
    assert packages_of(tmp_path, files) == {files[0]: "ecs-init"}


def test_a_unit_is_enabled_since_the_day_of_its_link(tmp_path: Path) -> None:
    wants = tmp_path / "etc/systemd/system/multi-user.target.wants"
    wants.mkdir(parents=True)
    (wants / "ecs.service").symlink_to("/lib/systemd/system/ecs.service")
    os.utime(wants / "ecs.service", (1_770_000_000, 1_770_000_000), follow_symlinks=False)
    assert enabled_since(tmp_path, ["ecs.service", "x.service"]) == {"ecs.service": "2026-02-02"}


def test_a_node_without_dpkg_has_no_owners(tmp_path: Path) -> None:
    assert packages_of(tmp_path, ["/etc/x"]) == {}
    assert enabled_since(tmp_path, ["x.service"]) == {}
