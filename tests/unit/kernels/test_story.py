"""The story's guest without booting it: its job, its machine, and what its kernel is built from."""

import io
import os
import re
import socket
import struct
import sys
import threading
from pathlib import Path

import pytest
from tests.kernels import plan, story_kernel
from tests.kernels.architecture import AMD64
from tests.kernels.guest import _command
from tests.kernels.image import Bootable
from tests.kernels.story import ring


def test_the_live_patch_replaces_one_function_of_the_kernel() -> None:
    source = story_kernel.SOURCE.read_text()
    assert re.findall(r'\.old_name = "(\w+)"', source) == ["memcg_numa_stat_show"]
    assert source.count("for_each_mem_cgroup_tree(iter, memcg)") == 2
    assert 'MODULE_INFO(livepatch, "Y")' in source


def test_a_live_patch_is_built_once_and_again_when_its_source_is_younger(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built = []

    def make(command: list[str], longest_s: float) -> str:
        (place,) = (word[2:] for word in command if word.startswith("M="))
        assert (Path(place) / "Makefile").read_text() == "obj-m := walk.o\n"
        (Path(place) / "walk.ko").touch()
        built.append(longest_s)
        return ""

    monkeypatch.setattr(story_kernel, "run", make)
    monkeypatch.setattr(story_kernel, "_headers", lambda directory, release: directory)
    monkeypatch.setattr(story_kernel, "SOURCE", tmp_path / "walk.c")
    (tmp_path / "walk.c").write_text("patch")
    module = story_kernel.live_patch(tmp_path, "5.10.0-1-amd64")
    assert story_kernel.live_patch(tmp_path, "5.10.0-1-amd64") == module
    assert len(built) == 1
    younger_s = module.stat().st_mtime + 10
    os.utime(tmp_path / "walk.c", (younger_s, younger_s))
    story_kernel.live_patch(tmp_path, "5.10.0-1-amd64")
    assert len(built) == 2


def test_the_guest_has_room_for_cores_and_a_peer_at_the_end_of_its_network(tmp_path: Path) -> None:
    (planned,) = plan.whole_story()
    kernel = Bootable("5.10-test", tmp_path / "k", tmp_path / "i", AMD64)
    command = _command(kernel, tmp_path / "root", planned.boot, tmp_path)
    assert command[command.index("-smp") + 1] == "2,maxcpus=96"
    assert sum(word.startswith("node,") for word in command) == planned.boot.numa_nodes
    network = command[command.index("-netdev") + 1]
    assert network.startswith("user,id=net,restrict=on,guestfwd=tcp:10.0.2.100:29500-cmd:")
    assert network.endswith("ring.py 1")
    assert sys.executable in network


def test_rank_1_answers_each_gradient_with_one_as_long() -> None:
    said = io.BytesIO()
    ring.answer(io.BytesIO(struct.pack("!I", 5) + b"aaaaa" + struct.pack("!I", 3) + b"bbb"), said)
    assert said.getvalue() == b"aaaaabbb"


def test_rank_0_gives_up_in_gloos_words_when_its_peer_is_silent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Answers one step, then nothing more."""
    listener = socket.create_server(("127.0.0.1", 0))
    monkeypatch.setattr(ring, "PEER", listener.getsockname())
    done = threading.Event()

    def one_answer() -> None:
        connection, _ = listener.accept()
        with connection, connection.makefile("rwb") as stream:
            (size,) = struct.unpack("!I", stream.read(4))
            stream.write(stream.read(size))
            stream.flush()
            done.wait(30)

    peer = threading.Thread(target=one_answer)
    peer.start()
    try:
        with pytest.raises(RuntimeError, match=r"step 1: Timed out waiting 500ms for recv"):
            ring.train(0.5, tmp_path / "step")
    finally:
        done.set()
        peer.join()
        listener.close()
    assert (tmp_path / "step").read_text() == "1"
