"""Whose network devices an ioctl of ours reaches."""

import errno
import os
from pathlib import Path
from types import SimpleNamespace

import pytest

from necroscope.sources.procfs import network_namespace
from necroscope.sources.procfs.network_namespace import is_network_of_node

OWN = Path("/proc/self/ns/net")


@pytest.fixture
def first_process(tmp_path: Path) -> Path:
    """The directory of the node's namespaces below a host root."""
    folder = tmp_path / "proc/1/ns"
    folder.mkdir(parents=True)
    return folder


@pytest.mark.kernel
def test_a_host_root_whose_first_process_has_our_namespace_is_our_network(
    tmp_path: Path, first_process: Path
) -> None:
    (first_process / "net").symlink_to(OWN)
    assert is_network_of_node(tmp_path)


def test_a_host_root_whose_first_process_has_another_namespace_is_not(
    tmp_path: Path, first_process: Path
) -> None:
    (first_process / "net").touch()
    assert not is_network_of_node(tmp_path)


def test_a_namespace_that_may_not_be_looked_at_is_ours_only_without_a_host_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: object) -> os.stat_result:
        raise PermissionError(errno.EACCES, "Permission denied", str(path))

    monkeypatch.setattr(network_namespace, "os", SimpleNamespace(stat=refuse))
    assert is_network_of_node(Path("/"))
    assert not is_network_of_node(tmp_path)
