"""Whose files they are, by what they say, by their names, and by who lies beside them."""

from pathlib import Path

from necroscope.interchange.detect import FileKind
from necroscope.interchange.input_hosts import by_host
from necroscope.interchange.inputs import Input
from necroscope.interchange.rolling import parse_name


def given(path: Path, text: str, kind: FileKind = FileKind.DMESG, host: str | None = None) -> Input:
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text(text)
    return Input(path, kind, parse_name(path), 1, 1, host=host)


def test_a_log_says_its_host_and_full_and_short_names_are_one(tmp_path: Path) -> None:
    files = [
        given(tmp_path / "a", "Apr 15 10:30:00 node-a kernel: x\n"),
        given(tmp_path / "b", "2026-04-15T10:30:00+0000 node-b kernel: x\n"),
        given(tmp_path / "c", "", host="node-a.ec2.internal"),
    ]
    hosts, strays = by_host(files)
    assert sorted(len(own) for own in hosts.values()) == [1, 2]
    assert not strays


def test_what_does_not_say_it_is_of_the_only_host_there_is(tmp_path: Path) -> None:
    files = [given(tmp_path / "a", "[  1.0] x\n"), given(tmp_path / "b", "", host="node-a")]
    assert by_host(files) == ({"node-a": files}, [])


def test_a_name_or_a_neighbour_says_whose_it_is_and_else_nobody(tmp_path: Path) -> None:
    named = given(tmp_path / "cgroups-node-a.txt", "x\n")
    beside = given(tmp_path / "two" / "cgroups.txt", "x\n")
    files = [
        given(tmp_path / "x", "", host="node-a"),
        given(tmp_path / "two" / "y", "", host="node-b"),
        named,
        beside,
        stray := given(tmp_path / "three" / "cgroups.txt", "x\n"),
    ]
    hosts, strays = by_host(files)
    assert named in hosts["node-a"]
    assert beside in hosts["node-b"]
    assert strays == [stray]
