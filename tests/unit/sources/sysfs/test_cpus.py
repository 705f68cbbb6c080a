"""CPU lists and the CPUs online."""

from pathlib import Path

import pytest
from tests.synthetic_root import write_files

from necroscope.sources.sysfs.cpus import OnlineCpus, parse


@pytest.mark.parametrize(
    ("text", "cpus"),
    [
        ("0-3,7", (0, 1, 2, 3, 7)),
        ("0\n", (0,)),
        (b"0-1\n", (0, 1)),
        ("", ()),
        ("\n", ()),
        ("2,4-5,9", (2, 4, 5, 9)),
    ],
)
def test_lists_are_read(text: str | bytes, cpus: tuple[int, ...]) -> None:
    assert parse(text) == cpus


def test_online_cores_are_followed(tmp_path: Path) -> None:
    write_files(tmp_path, {"sys/devices/system/cpu/online": "0-3\n"})
    online = OnlineCpus(tmp_path)
    assert online.read() == (0, 1, 2, 3)
    write_files(tmp_path, {"sys/devices/system/cpu/online": "0,2-3\n"})
    assert online.read() == (0, 2, 3)
    online.close()


def test_without_sysfs_nothing_is_known(tmp_path: Path) -> None:
    assert OnlineCpus(tmp_path).read() is None
