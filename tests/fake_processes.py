"""Processes of a made-up /proc, and their connections to a daemon."""

from pathlib import Path

import pytest

from necroscope.sources.containers import connections


def process(root: Path, pid: int, comm: str, arguments: list[str], cgroup: str) -> None:
    folder = root / "proc" / str(pid)
    folder.mkdir()
    (folder / "comm").write_text(comm + "\n")
    (folder / "cmdline").write_text("\0".join(arguments) + "\0")
    (folder / "cgroup").write_text(cgroup)


def connected(monkeypatch: pytest.MonkeyPatch, pids: dict[int, str]) -> None:
    """By the inode of the connection; the dictionary may change later."""
    peers = connections.unix_peers
    monkeypatch.setattr(peers, "peers", lambda _paths: list(pids))
    monkeypatch.setattr(
        peers, "holders", lambda _root, inodes, _of: {one: pids[one] for one in inodes}
    )
