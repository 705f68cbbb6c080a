"""The kernel walks state that users have made: one call goes over all objects and holds a core.

Signature: one section of the kernel (a system call, a work item) has most of a core, named by its
outermost function below the entries that all share; a population grows, or is very large.
Confirming signal: the time of the section's turns grows with a population over the recording; or
the functions bear the name of a population that only users make, and it is very large. Work that
moves bytes (copies, clears, compresses) is as long as what was asked for, and no walk.
Source: any loop over N where users make N: Pinterest 2026 (zombie memcgs), Cloudflare 2025 (LPM
trie), Alibaba ACK (live cgroups), Netflix "Mount Mayhem"; the functions are in the recording.
"""

from dataclasses import dataclass
from typing import Final

from necroscope.analysis.case import Case
from necroscope.analysis.cause import Assessment, Cause
from necroscope.analysis.evidence import file_of, in_samples, suffering, what_held_the_core
from necroscope.analysis.functions import functions
from necroscope.analysis.kernel_sections import KernelSection, moves_data, task_section
from necroscope.analysis.populations import Population, all_populations, holders, merged
from necroscope.analysis.report import Culprit, Evidence, WalkedState, WillNotHelp
from necroscope.analysis.stacks import INTERRUPT
from necroscope.analysis.state_maker import maker_of
from necroscope.analysis.task_origin import origin_of
from necroscope.analysis.thresholds import Threshold, Thresholds
from necroscope.analysis.walk_history import (
    SURE,
    SectionTurns,
    WalkRelation,
    as_sure,
    relations,
    turns_of,
)
from necroscope.analysis.walk_numbers import latest_turn_s, walked_state
from necroscope.analysis.walked_names import likeness
from necroscope.model.span import Span
from necroscope.model.units import NS_PER_S, format_duration, format_moment

# Kinds that only grow large where a user makes them: of these a name and a number are enough.
_MADE_BY_USERS: Final = frozenset(
    [
        "tcp-sockets",
        "udp-sockets",
        "unix-sockets",
        "raw-sockets",
        "packet-sockets",
        "netlink-sockets",
        "neighbours",
        "neighbours-ipv6",
        "routes-ipv6",
        "conntrack-entries",
        "keys",
        "mounts",
        "ipvs-services",
        "network-devices",
        "shared-memory-segments",
        "semaphore-sets",
        "message-queues",
        "bpf-maps",
        "dead-cgroups",
        "cgroups",
        "slab:file_lock_cache",
        "slab:file_lease_cache",
        "slab:inotify_inode_mark",
        "slab:eventpoll_epi",
        "slab:ip_fib_alias",
        "slab:ip_fib_trie",
        "slab:mnt_cache",
        "slab:posix_timers_cache",
        "slab:nf_conntrack",
        "slab:key_jar",
        "slab:net_namespace",
        "slab:xfrm_state",
        "slab:UNIX",
        "slab:TCP",
        "slab:UDP",
        "slab:tw_sock_TCP",
        "slab:tcp_bind_bucket",
    ]
)
# Of these every node has many, and what counts is how many one process has: as it is asked for.
_OF_ONE_PROCESS: Final = {
    "slab:vm_area_struct": "mappings",
    "threads": "threads",
    "slab:task_struct": "threads",
}
# These serve one socket, file or fault at a time, as often as they are asked.
SERVES: Final = functions(
    "*sendmsg* *recvmsg* *sendto* *recvfrom* *_xmit* *_rcv *_poll* *write_iter* *read_iter*"
    " *_fault* *splice* *sendpage* filemap_read* generic_perform_write* do_futex* schedule*"
)

LIMITS: Final = Thresholds(
    least=Threshold(0.35, "of what runs: below it the core has other things to do as well"),
    confirmed=Threshold(0.5, "half of what runs is one section"),
    data=Threshold(0.35, "of the section copies or computes over bytes: it is long for that"),
    many=Threshold(8_000.0, "objects of one kind: at 20 ns to 1 us each a walk is felt"),
    mappings=Threshold(20_000.0, "mappings of one process; a whole node has as many on any day"),
    threads=Threshold(4_000.0, "threads of one process; a whole node has as many on any day"),
    pure=Threshold(0.75, "of what the task did: a task that does other things in between serves"),
)


@dataclass(frozen=True)
class _Walk:
    """What is known of one walk."""

    case: Case
    section: KernelSection
    culprit: Culprit | None
    turns: SectionTurns
    related: list[WalkRelation]
    populations: dict[str, Population]

    @property
    def relation(self) -> WalkRelation | None:
        """The one that the functions name; else of those that cannot be told apart the largest."""
        named = [one for one in self.related if self.likeness(one.population)]
        close = named or [one for one in as_sure(self.related) if one.sureness >= SURE]
        return max(close, key=lambda one: self._rank(one.population), default=None)

    @property
    def population(self) -> Population | None:
        if self.relation is not None:
            return self.relation.population
        named = [one for one in self.populations.values() if self.likeness(one)]
        return max(named, key=lambda one: (self.is_large(one), *self._rank(one)), default=None)

    @property
    def competitors(self) -> list[Population]:
        """Others that grew alike, where the functions do not say which it is."""
        chosen = self.population
        if chosen is None or self.likeness(chosen) or not self.related:
            return []
        return [one.population for one in as_sure(self.related) if one.population is not chosen]

    def likeness(self, population: Population) -> int:
        """By the functions; where they have no words of their own, by the file that is read."""
        by_function = likeness((self.section.function, *self.section.path), population)
        return by_function or likeness(self.files, population)

    @property
    def words(self) -> str:
        """As people call the objects; of merged slab caches those that the functions name."""
        population = self.population
        if population is None:
            return "objects"
        own = [one for one in population.parts if self.likeness(one)]
        return merged(own).words if own else population.words

    @property
    def files(self) -> list[str]:
        """`locks` of /proc/locks: what the culprit read when it was looked at."""
        comm = self.culprit.comm if self.culprit else None
        read = {row["file"] for row in self.case.tasks if row["file"] and row["comm"] == comm}
        return sorted(file.rpartition("/")[2] for file in read if file.startswith("/proc/"))

    def is_large(self, population: Population) -> bool:
        """So many that the name of a function is enough to say what it walks."""
        case = self.case
        end_ns = case.window[1] + 11 * NS_PER_S
        kinds = {population.kind, *(f"slab:{name}" for name in population.names)}
        held = next((name for kind, name in _OF_ONE_PROCESS.items() if kind in kinds), None)
        if held is not None:
            most = next(iter(holders(case.node, held, end_ns)), None)
            least = case.limits.mappings if held == "mappings" else case.limits.threads
            return most is not None and most.count >= least
        return bool(kinds & _MADE_BY_USERS) and float(population.at(end_ns)) >= case.limits.many

    def _rank(self, population: Population) -> tuple[int, bool, float]:
        """By name, then those with a name of their own before caches, then by number."""
        own_name = not population.kind.startswith("slab:kmalloc")
        return self.likeness(population), own_name, float(population.at(self.case.window[1]))


def assess(case: Case) -> Assessment | None:
    if case.mode in ("softirq", "irq", "steal", "user") or not case.samples.now.total:
        return None
    section = task_section(case.samples.now)
    if section is None or section.share < case.limits.least:
        return None
    walk = _walk(case, section)
    population = walk.population
    # Where neither a number nor a name says what is walked, `unknown` tells the same with less.
    if section.share < case.limits.confirmed or not _is_walk(walk):
        return None
    made = maker_of(case, population, section, walk.culprit) if population else None
    maker = made[0].name if made else None
    return Assessment(
        explains=section.share,
        is_confirmed=True,
        evidence=[
            in_samples(case, section.functions, f"{section.function} and what it calls"),
            *_growth(walk),
            *([case.evidence(made[1], "populations")] if made else []),
            *_competition(walk),
            *what_held_the_core(case),
            *file_of(case, walk.culprit),
            *suffering(case),
        ],
        doubt=0.0 if walk.relation else 0.1 if population else 0.25,
        summary=_summary(walk, maker),
        culprit=walk.culprit,
        origin=made[0] if made else origin_of(walk.culprit),
        fix=_fix(walk, maker),
        walked=_describe_state(walk),
    )


def _walk(case: Case, section: KernelSection) -> _Walk:
    culprit = case.culprit(section.functions)
    start_ns = case.node.recording.info().from_ns or case.node.span[0]
    known = all_populations(case.node, Span(start_ns, case.node.span[1]))
    turns = turns_of(case, section.functions, culprit.comm if culprit else None)
    return _Walk(case, section, culprit, turns, relations(turns, known), known)


def _is_walk(walk: _Walk) -> bool:
    case, section, limits = walk.case, walk.section, walk.case.limits
    is_data = moves_data(case.samples.now, section) >= limits.data
    if is_data or section.function in SERVES or _purity(walk) < limits.pure:
        return False
    population = walk.population
    return walk.relation is not None or (population is not None and walk.is_large(population))


def _purity(walk: _Walk) -> float:
    """Of all that the culprit did on the core: how much of it is the section."""
    now, culprit = walk.case.samples.now, walk.culprit
    if culprit is None or culprit.comm is None:
        return 0.0
    own = now.of_task(culprit.comm, culprit.cgroup, culprit.pid).without(INTERRUPT)
    return own.share(walk.section.functions)


def _growth(walk: _Walk) -> list[Evidence]:
    """How long a turn takes, over how many, and how that has grown."""
    case, population, turn_s = walk.case, walk.population, latest_turn_s(walk.turns)
    found = []
    if turn_s is not None and len(walk.turns) > 1:
        first_s = float(walk.turns.seconds[0])
        text = (
            f"{walk.section.function} ran {len(walk.turns)} times without a pause: the first took"
            f" {first_s * 1e3:,.0f} ms, the latest {turn_s * 1e3:,.0f} ms"
        )
        found.append(case.evidence(text, "samples"))
    if population is None:
        return found
    first, now = (float(population.at(t)) for t in (case.node.span[0], case.window[1]))
    text = f"{now:,.0f} {walk.words}, {first:,.0f} when the recording began"
    if walk.relation is not None:
        power = walk.relation.exponent
        how = "in proportion to" if power < 1.4 else f"with the power {power:.1f} of"
        text += f"; the time per turn grows {how} their number ({walk.relation.sureness:.0%} sure)"
    return [*found, case.evidence(text, "populations")]


def _competition(walk: _Walk) -> list[Evidence]:
    chosen, others = walk.population, walk.competitors
    if chosen is None or not others:
        return []
    text = (
        f"{others[0].words} grew as fast: to see which is walked, let one grow or shrink alone,"
        " and watch whether turns get longer"
    )
    return [walk.case.evidence(text, "populations")]


def _summary(walk: _Walk, maker: str | None) -> str:
    case, section, population = walk.case, walk.section, walk.population
    who = (walk.culprit.comm if walk.culprit else None) or "a task"
    held = f"{who} held {case.place} in {section.function} for {case.seconds:.1f} s{case.beat}"
    state = _describe_state(walk)
    if population is None or state.count is None:
        return f"{held}; the kernel walks objects there that were not counted"
    of_whom = f", made by {maker}" if maker else ""
    over = f"{state.count:,} {walk.words}{of_whom}"
    if state.per_object_ns is None:
        return f"{held}: it walks {over}"
    cost = format_duration(round(state.per_object_ns))
    when = ""
    if state.one_second_at_ns is not None:
        when = f"; at this growth one walk will take 1 s by {format_moment(state.one_second_at_ns)}"
    return f"{held}: about {cost} for each of {over}{when}"


def _describe_state(walk: _Walk) -> WalkedState:
    power = walk.relation.exponent if walk.relation else 1.0
    competes = walk.competitors[0].kind if walk.competitors else None
    function, turns = walk.section.function, walk.turns
    return walked_state(walk.case, function, turns, walk.population, power, competes)


def _fix(walk: _Walk, maker: str | None) -> tuple[str, ...]:
    who = (walk.culprit.comm if walk.culprit else None) or "the task"
    if walk.population is None:
        return ()
    words = walk.words
    keeper = f"{maker} keeps" if maker else "some program keeps"
    return (
        f"find why {keeper} this many {words}, and let it release what it does not need",
        f"until then have {who} ask less often, or for less: each turn walks all {words}",
    )


CAUSE = Cause(
    slug="kernel-state-walk",
    title="the kernel walks objects that programs created, one by one",
    confirming=(
        "one section of the kernel takes half of the core, and its turns grow with a population,"
        " or its functions name a very large one"
    ),
    would_confirm=(
        "several turns while the number of objects changes: then the recording shows which"
        " population they grow with"
    ),
    assess=assess,
    thresholds=LIMITS,
    fix=("bound the number: a limit, a time-out or a quota where the objects are made",),
    verify=("a turn takes milliseconds again, and the population stops growing",),
    will_not_help=(
        WillNotHelp("a higher priority for what waits", "the core is in the kernel, in one call"),
        WillNotHelp("more memory", "the walk is over the number of objects, not over bytes"),
    ),
    # All that know the mechanism. What happens elsewhere on the node at the same time is not among
    # them.
    yields_to=frozenset(
        [
            "zombie-memcg-walk",
            "dentry-walk",
            "proc-net-scan",
            "mountinfo-reparse",
            "path-lookup-contention",
            "rstat-flush-contention",
            "fsnotify-storm",
            "fork-exec-churn",
            "page-fault-storm",
            "compaction-stall",
            "direct-reclaim",
            "kswapd-reclaim",
            "memcg-limit-reclaim",
            "writeback-stall",
            "ebpf-overhead",
            "netfilter-rules",
            "tlb-shootdown",
            "spinlock-contention",
            "irq-core-collision",
            "nic-device-fault",
            "softirq-blackout",
            "rt-hog",
            "vm-steal",
            "blocked-io",
        ]
    ),
)
