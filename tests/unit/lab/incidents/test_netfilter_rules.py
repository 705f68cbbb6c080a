"""The rules that are loaded."""

from necroscope.lab.incidents.netfilter_rules import rules


def test_each_rule_blocks_another_address_and_all_packets_reach_the_chain() -> None:
    lines = rules(1000, "BLOCKLIST", 65_000).splitlines()
    blocked = [line for line in lines if line.startswith("-A BLOCKLIST -s ")]
    assert len(blocked) == len(set(blocked)) == 1000
    assert lines[-2:] == ["-A INPUT -j BLOCKLIST", "COMMIT"]
