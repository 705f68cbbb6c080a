"""The user's pattern file: what is read, and what a mistake is reported as."""

from pathlib import Path

import pytest

from necroscope.errors import UsageError
from necroscope.sources.kernel_log.patterns import PatternSet
from necroscope.sources.kernel_log.user_patterns import parse_user_patterns, read_user_patterns

GOOD = """
[[pattern]]
id = "acme.link"
kind = "fabric_error"
regex = 'acme (?P<device>\\S+): fabric error on port (?P<port>\\d+)'
contains = "fabric error"

[[pattern]]
id = "acme.panic"
kind = "fabric_panic"
regex = "acme: panic"
alarm = true
"""


def entry(**keys: str) -> str:
    return "[[pattern]]\n" + "\n".join(f"{name} = {value}" for name, value in keys.items())


def test_patterns_are_read_and_used(tmp_path: Path) -> None:
    path = tmp_path / "patterns.toml"
    path.write_text(GOOD)
    first, second = read_user_patterns(path)
    assert (first.id, first.kind, first.keywords, first.alarm) == (
        "acme.link",
        "fabric_error",
        ("fabric error",),
        False,
    )
    assert second.alarm
    found = PatternSet((first, second)).find_user("acme fab0: fabric error on port 7")
    assert [(pattern.id, match["port"]) for pattern, match in found] == [("acme.link", "7")]


def test_an_empty_file_has_no_patterns() -> None:
    assert parse_user_patterns("", "x") == ()


@pytest.mark.parametrize(
    ("text", "facts"),
    [
        ("pattern = [", "pattern file x is not valid TOML"),
        ("pattern = 3", "holds something that is not a [[pattern]]"),
        ("[other]\na = 1", "holds something that is not a [[pattern]]"),
        (entry(id="'a'", kind="'b'"), "pattern 1 of x has no regex"),
        (entry(regex="'r'"), "pattern 1 of x has no id and no kind"),
        (entry(id="'a'", kind="'b'", regex="'('"), "pattern 1 of x: '(' is not a valid regex"),
        (entry(id="'a'", kind="'b'", regex="'x*'"), "matches an empty line"),
        (entry(id="'a'", kind="'b'", regex="3"), "pattern 1 of x: regex is not text"),
        (
            entry(id="'a'", kind="'b'", regex="'r'", colour="'red'"),
            "pattern 1 of x: there is no key 'colour'",
        ),
        (entry(id="'A B'", kind="'b'", regex="'r'"), "id 'A B' is not a valid id"),
        (entry(id="'lockup.soft'", kind="'b'", regex="'r'"), "id 'lockup.soft' is taken"),
        (
            entry(id="'a'", kind="'b'", regex="'r'")
            + "\n"
            + entry(id="'a'", kind="'b'", regex="'r'"),
            "pattern 2 of x: id 'a' is taken",
        ),
        (entry(id="'a'", kind="'NIC reset'", regex="'r'"), "kind 'NIC reset' is not a valid kind"),
    ],
)
def test_a_mistake_names_the_entry_and_what_is_wrong(text: str, facts: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_user_patterns(text, "x")
    assert facts in caught.value.facts
    assert caught.value.hint


def test_a_file_that_cannot_be_read_is_a_usage_error(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot read pattern file"):
        read_user_patterns(tmp_path / "absent.toml")
    path = tmp_path / "latin.toml"
    path.write_bytes(b"# \xff\xfe")
    with pytest.raises(UsageError, match="is not UTF-8"):
        read_user_patterns(path)
