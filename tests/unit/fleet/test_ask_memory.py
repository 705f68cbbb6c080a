"""A question's share of memory: of the smallest bound that holds for the process."""

from pathlib import Path

import pytest

from necroscope.fleet.ask import question_bytes

GIB = 1 << 30


@pytest.fixture(autouse=True)
def machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 6 GiB."""
    monkeypatch.setattr(
        "os.sysconf", {"SC_PHYS_PAGES": 6 * GIB // 4096, "SC_PAGE_SIZE": 4096}.__getitem__
    )


@pytest.mark.parametrize(
    ("cgroup", "bounds", "share_bytes"),
    [
        # A container with a cgroup namespace, and a service below a slice that has the bound.
        ("0::/", {"memory.max": f"{2 * GIB}\n"}, GIB // 2),
        (
            "0::/a.slice/b.service",
            {"a.slice/memory.max": f"{GIB}\n", "a.slice/b.service/memory.max": "max\n"},
            GIB // 4,
        ),
        # Version 1, without a namespace: the path is the host's.
        (
            "5:cpu,memory:/docker/12ab\n1:name=systemd:/x\n",
            {"memory/memory.limit_in_bytes": f"{2 * GIB}\n"},
            GIB // 2,
        ),
        ("0::/", {"memory.max": "max\n"}, 6 * GIB // 4),
        ("0::/", {"memory.max": f"{64 * GIB}\n"}, 6 * GIB // 4),
        ("", {}, 6 * GIB // 4),
    ],
)
def test_a_quarter_of_the_smallest_bound(
    tmp_path: Path, cgroup: str, bounds: dict[str, str], share_bytes: int
) -> None:
    for place, text in {
        "proc/self/cgroup": cgroup,
        **{f"sys/fs/cgroup/{name}": text for name, text in bounds.items()},
    }.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / place).write_text(text)
    assert question_bytes(tmp_path) == share_bytes


def test_a_large_machine_gives_two_gibibytes_and_one_without_cgroups_its_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert question_bytes(tmp_path) == 6 * GIB // 4
    monkeypatch.setattr(
        "os.sysconf", {"SC_PHYS_PAGES": 256 * GIB // 4096, "SC_PAGE_SIZE": 4096}.__getitem__
    )
    assert question_bytes(tmp_path) == 2 * GIB
