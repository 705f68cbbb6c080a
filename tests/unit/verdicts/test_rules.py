"""A ledger says by which rules it was judged: another rule of the same version is another one."""

from pathlib import Path

from necroscope import __version__
from necroscope.verdicts.rules import checksum, rules


def test_the_rules_are_known_by_version_and_content() -> None:
    version, _, crc = rules().partition(" ")
    assert version == __version__
    assert int(crc, 16)


def test_a_changed_threshold_is_other_rules_and_a_compiled_file_is_not(tmp_path: Path) -> None:
    (tmp_path / "causes").mkdir()
    rule = tmp_path / "causes" / "rule.py"
    rule.write_text("LEAST = 1")
    before = checksum(tmp_path)
    (tmp_path / "causes" / "rule.pyc").write_text("x")
    assert checksum(tmp_path) == before
    rule.write_text("LEAST = 2")
    assert checksum(tmp_path) != before
