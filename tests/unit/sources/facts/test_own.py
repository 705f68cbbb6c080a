"""Facts of the operator's own: commands that hang, shout or fail, and nothing that nobody named."""

import hashlib
import os
import sys
from pathlib import Path

import pytest
from tests.synthetic_root import write_files

from necroscope.errors import SourceUnavailable, UsageError
from necroscope.sources.facts import collect, own
from necroscope.sources.facts.fact import VALUE_LIMIT, Fact
from necroscope.sources.facts.own import OwnFact, OwnFacts, parse_own_facts, read_own_facts

PYTHON = sys.executable


def collected(
    root: Path, *facts: OwnFact, variables: tuple[str, ...] = ()
) -> tuple[list[Fact], str]:
    """What came, and what was said of the rest."""
    found: list[Fact] = []
    try:
        for each in own.collect(root, OwnFacts(facts, variables)):
            found.append(each)
    except SourceUnavailable as error:
        return found, error.facts
    return found, ""


def says(name: str, code: str) -> OwnFact:
    return OwnFact(name, command=(PYTHON, "-c", code))


def test_a_command_and_a_file_become_facts(tmp_path: Path) -> None:
    write_files(tmp_path, {"etc/agent": "a = 1\nb = 2\n"})
    found, trouble = collected(
        tmp_path,
        says("url", "print('https://x/a', end=chr(10)); print('b')"),
        OwnFact("text", file="/etc/agent"),
        OwnFact("hash", file="/etc/agent", sha256=True),
    )
    digest = hashlib.sha256(b"a = 1\nb = 2\n").hexdigest()
    assert found == [
        Fact("own", "url", "https://x/a b"),
        Fact("own", "text", "a = 1 b = 2"),
        Fact("own", "hash", digest),
    ]
    assert trouble == ""


def test_one_that_hangs_or_shouts_or_fails_is_named_and_costs_no_other(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own, "_TIMEOUT_S", 0.3)
    found, trouble = collected(
        tmp_path,
        says("hangs", "import time; time.sleep(600)"),
        OwnFact("missing", file="/etc/none"),
        OwnFact("absent", command=("/nonexistent/program",)),
        OwnFact("last", command=("/bin/echo", "well")),
    )
    assert found == [Fact("own", "last", "well")]
    for said in ("hangs: ", "took too long", "cannot read /etc/none", "cannot start /nonexistent"):
        assert said in trouble
    monkeypatch.setattr(own, "_TIMEOUT_S", 20.0)
    found, trouble = collected(
        tmp_path, says("shouts", "print('x' * (1 << 20))"), says("fails", "raise SystemExit(3)")
    )
    assert found == []
    assert "printed too much" in trouble
    assert "ended with status 3" in trouble


def test_hostile_output_is_cleaned_and_cut(tmp_path: Path) -> None:
    evil = "import sys; sys.stdout.buffer.write(bytes(range(256)) + b'\\x1b[2J' + b'y' * 9000)"
    (found,), _ = collected(tmp_path, says("evil", evil))
    assert found.value.isprintable()
    assert len(found.value) <= VALUE_LIMIT + 20


def test_after_half_a_minute_the_rest_is_not_asked(tmp_path: Path) -> None:
    clock = iter([0.0, 1.0, 31.0])
    facts = OwnFacts(
        (OwnFact("a", command=("/bin/echo", "1")), OwnFact("b", command=("/bin/echo",)))
    )
    came = own.collect(tmp_path, facts, lambda: next(clock))
    assert next(came) == Fact("own", "a", "1")
    with pytest.raises(SourceUnavailable, match="b: not asked"):
        next(came)


def test_of_environments_only_named_variables_are_taken(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "proc/10/environ": "MALLOC_CONF=a:1\0SECRET=hush\0",
            "proc/10/comm": "train\n",
            "proc/11/environ": "MALLOC_CONF=b:2\0MALLOC_CONFX=no\0",
            "proc/11/comm": "train\n",
            "proc/12/comm": "other\n",
        },
    )
    found, _ = collected(tmp_path, variables=("MALLOC_CONF",))
    assert found == [Fact("job_environment", "MALLOC_CONF train", "a:1 | b:2")]
    assert collected(tmp_path) == ([], "")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x = 1", "not a \\[\\[fact\\]\\]"),
        ("[[fact]]\nname = 'a'", "neither a command nor a file"),
        ("[[fact]]\nname = 'a'\nfile = '/x'\ncommand = ['/y']", "or both"),
        ("[[fact]]\nname = 'a'\ncommand = ['sh']", "absolute path"),
        ("[[fact]]\nname = 'a'\ncommand = 'sh -c x'", "absolute path"),
        ("[[fact]]\nname = ''\nfile = '/x'", "no valid name"),
        ("[[fact]]\nname = 'a'\nfile = '/x'\nshell = true", "is not a fact"),
        ("[[fact]]\nname='a'\nfile='/x'\n[[fact]]\nname='a'\nfile='/y'", "twice"),
        ("[environment]\nvariables = ['*']", "is not a list"),
        ("[environment]\nvariables = 'A'", "is not a list"),
        ("[[fact]\n", "not valid TOML"),
    ],
)
def test_what_is_wrong_with_the_file_is_said_at_the_start(text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        parse_own_facts(text, "own.toml")


def test_a_file_that_others_can_write_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text("[[fact]]\nname = 'a'\nfile = '/etc/a'\n")
    file.chmod(0o644)
    assert read_own_facts(file).facts == (OwnFact("a", file="/etc/a"),)
    file.chmod(0o666)
    with pytest.raises(UsageError, match="can be written by others"):
        read_own_facts(file)
    with pytest.raises(UsageError, match="cannot read"):
        read_own_facts(tmp_path / "none")


def test_the_collecting_child_tells_them_beside_the_others(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text("[[fact]]\nname = 'greeting'\ncommand = ['/bin/echo', 'well']\n")
    file.chmod(0o600)
    skip = set(collect.STAGES)
    found = list(collect.lines(tmp_path, skip, {}, is_metadata_asked=False, own_file=file))
    assert ["fact", "own", "greeting", "well"] in found
    assert found.index(["stage", "own"]) < found.index(["end"])


@pytest.mark.skipif(os.geteuid() != 0, reason="gives a file away: needs root")
def test_a_file_of_another_user_is_refused_and_a_missing_one_is_named_once(tmp_path: Path) -> None:
    file = tmp_path / "own.toml"
    file.write_text("[[fact]]\nname = 'a'\nfile = '/etc/a'\n")
    file.chmod(0o644)
    os.chown(file, 65534, 65534)
    with pytest.raises(UsageError, match="belongs to another user"):
        read_own_facts(file)
    with pytest.raises(UsageError) as refused:
        read_own_facts(tmp_path / "gone")
    assert refused.value.facts.count("gone") == 1
