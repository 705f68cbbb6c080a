"""Packets walk through long chains of firewall rules, or a tool replaces whole tables of them at
once.

Signature: a core full of softirq with few packets, and in its stacks the loop over rules
(`ipt_do_table`, `nft_do_chain`) under the network's hooks. Or a core in system mode under
`iptables-restore` or `nft`, in the functions that check and swap tables.
Confirming signal: the loop has a large part of all that the core does with packets: with few rules
it is a few per cent. For a replacement, its functions have the core for a second and more.
Source: kubernetes #37853, #48107, #14870 (164,757 rules), #135639 (nft, a soft lockup of 22 s);
net/ipv4/netfilter/ip_tables.c, net/netfilter/nf_tables_core.c.
"""

from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.evidence import in_samples, suffering, what_held_the_core
from necroscope.analysis.functions import Functions, functions
from necroscope.analysis.periodicity import describe_period
from necroscope.analysis.report import Origin, WillNotHelp
from necroscope.analysis.thresholds import Threshold, Thresholds

IPTABLES: Final = functions("ipt_do_table ip6t_do_table arpt_do_table ebt_do_table")
NFTABLES: Final = functions("nft_do_chain nft_do_chain_*")
RULES: Final = IPTABLES | NFTABLES
PACKETS: Final = functions(
    "net_rx_action process_backlog __netif_receive_skb* ip_rcv* ip6_rcv* ip_local_deliver*"
    " ip_forward* nf_hook_slow* ip_output __ip_queue_xmit __dev_queue_xmit ip_send_skb udp_sendmsg"
    " tcp_sendmsg*"
)
# A table is checked rule by rule, its counters are added up over all cores, and it is swapped as a
# whole.
REPLACES_IPTABLES: Final = functions(
    "do_replace translate_table mark_source_chains find_check_entry check_entry_size_and_hooks"
    " xt_replace_table get_counters alloc_counters do_ipt_set_ctl do_ip6t_set_ctl do_add_counters"
    " copy_entries_to_user xt_check_entry_offsets"
)
REPLACES_NFTABLES: Final = functions(
    "nf_tables_* __nf_tables_* nft_trans_* nft_set_* __nft_set_* nft_*_validate nft_chain_validate"
    " nft_table_validate __nft_release_* nfnetlink_rcv_batch nft_rbtree_* nft_pipapo_*"
)
REPLACES: Final = REPLACES_IPTABLES | REPLACES_NFTABLES
LIMITS: Final = Thresholds(
    least=Threshold(0.15, "a host firewall of some dozen rules stays below it"),
    of_core=Threshold(0.25, "a quarter of the core walks rules or swaps them"),
    of_packets=Threshold(0.35, "with few rules the loop is a few per cent of a packet's way"),
    replaced_s=Threshold(1.0, "a replacement that is over within a second harms no queue"),
    family=Threshold(0.075, "of the core: enough to say which tool's loop it is"),
)


def assess(case: Case) -> Assessment | None:
    walked, replaced = case.samples.now.share(RULES), case.samples.now.share(REPLACES)
    if max(walked, replaced) < case.limits.least:
        return None
    return _walk(case, walked) if walked >= replaced else _replacement(case, replaced)


def _walk(case: Case, walked: float) -> Assessment:
    of_packets = walked / max(case.samples.now.share(PACKETS), walked)
    processed = case.counters.rate("softnet", "processed", cpu=case.core).now
    texts = [(f"that is {of_packets:.0%} of the core's work on packets", "samples")]
    if processed is not None:
        texts.append((f"at only {processed:,.0f} packets/s", "softnet"))
    name = f"{_family(case, IPTABLES)} rules"
    return Assessment(
        explains=walked,
        is_confirmed=walked >= case.limits.of_core and of_packets >= case.limits.of_packets,
        evidence=[
            in_samples(case, RULES, "the loop over firewall rules"),
            *(case.evidence(text, table, case.core) for text, table in texts),
            *what_held_the_core(case),
            *suffering(case),
        ],
        summary=(
            f"each packet on core {case.core} walks through long chains of {name}, {walked:.0%} of"
            " what the core does"
        ),
        culprit=case.culprit(RULES),
        origin=Origin("setting", name),
    )


def _replacement(case: Case, replaced: float) -> Assessment:
    culprit = case.culprit(REPLACES)
    name = f"{_family(case, REPLACES_IPTABLES)} rules"
    less_often = (
        f"change fewer rules at once, or less often than {describe_period(case.period_s or 0.0)}"
    )
    return Assessment(
        explains=replaced,
        is_confirmed=replaced >= case.limits.of_core and case.seconds >= case.limits.replaced_s,
        evidence=[
            in_samples(case, REPLACES, "checking and swapping rules"),
            *what_held_the_core(case),
            *suffering(case),
        ],
        would_confirm=(
            "how long a change of the rules takes (time iptables-restore, kube-proxy's sync"
            " duration)"
        ),
        summary=(
            f"{culprit.comm if culprit else 'a tool'} replaced {name} on core {case.core},"
            f" {case.seconds:.1f} s in the kernel"
        ),
        culprit=culprit,
        origin=Origin("setting", name),
        fix=(less_often,) if case.period_s else (),
    )


def _family(case: Case, iptables: Functions) -> str:
    """By the functions: iptables' own loop, or nftables, which may also be what iptables is built
    on.
    """
    return "iptables" if case.samples.now.share(iptables) >= case.limits.family else "nftables"


CAUSE = Cause(
    slug="netfilter-rules",
    title="packets walk through long chains of firewall rules, or a tool replaces them",
    confirming="the loop over rules takes a third of the packet work and a quarter of the core",
    would_confirm=(
        "the number of rules (iptables-save | wc -l, nft list ruleset | wc -l) in the namespaces of"
        " this node"
    ),
    assess=assess,
    thresholds=LIMITS,
    fix=(
        (
            "count them: iptables-save | wc -l and nft list ruleset | wc -l, also in the network"
            " namespaces of containers"
        ),
        (
            "one lookup instead of a walk: sets (ipset, nft sets and maps), IPVS or eBPF instead of"
            " iptables for services"
        ),
        "remove what is no longer needed: chains of deleted services, block lists that only grow",
    ),
    verify=("the loop over rules takes only a few per cent of the core at the same packet rate",),
    will_not_help=(
        WillNotHelp("only raising the proxy's sync period", "packets still walk the same chains"),
        WillNotHelp(
            "more queues or RPS",
            "it spreads the walk over more cores; each packet takes just as long",
        ),
        WillNotHelp("a larger backlog or ring", "packets arrive faster than the rules are walked"),
    ),
)
