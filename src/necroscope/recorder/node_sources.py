"""All sources of this node, opened once; one that cannot be opened is named with its reason, and
the others go on.
"""

import resource
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from necroscope.errors import NecroscopeError, SourceUnavailable
from necroscope.model.child import start_process
from necroscope.model.clocks import TimeLine
from necroscope.model.earlier_boot import EarlierBoot
from necroscope.model.reading import Source, Trouble
from necroscope.model.units import NS_PER_S
from necroscope.recorder.clock_watch import Clock, ClockWatch
from necroscope.recorder.own_cost import OwnCost
from necroscope.recorder.task_capture import TaskCapture
from necroscope.settings import Settings
from necroscope.sources.cgroupfs.cgroups import Cgroups
from necroscope.sources.containers.containers import Containers
from necroscope.sources.facts.own import read_own_facts
from necroscope.sources.facts.source import Facts
from necroscope.sources.jobs.jobs import Jobs
from necroscope.sources.kernel_log.boot_end import BootEnd
from necroscope.sources.kernel_log.patterns import PatternSet
from necroscope.sources.kernel_log.source import KernelLog
from necroscope.sources.kernel_log.user_patterns import read_user_patterns
from necroscope.sources.perf.cgroup_ledger import CgroupLedger
from necroscope.sources.perf.rings import HotPlug, Rings
from necroscope.sources.perf.sampler import Sampler
from necroscope.sources.perf.softirq_delay import SoftirqDelay
from necroscope.sources.perf.waits import Waits
from necroscope.sources.procfs.interrupts import Interrupts
from necroscope.sources.procfs.memory import Memory
from necroscope.sources.procfs.network import NetworkCounters
from necroscope.sources.procfs.populations import Populations
from necroscope.sources.procfs.pressure import Pressure
from necroscope.sources.procfs.schedstat import RunQueue
from necroscope.sources.procfs.softirqs import Softirqs
from necroscope.sources.procfs.softnet import SoftnetStat
from necroscope.sources.procfs.stat import Cores
from necroscope.sources.ray.dashboard import Dashboard
from necroscope.sources.ray.ray import Ray
from necroscope.sources.sysfs import cpus
from necroscope.sources.sysfs.nics import Nics
from necroscope.sources.systemd.units import Units
from necroscope.symbols.broker import Broker
from necroscope.symbols.lookup import Lookup

_LEDGER_TABLE = ("cgroup_ledger",)


@dataclass(slots=True)
class NodeSources:
    """`sources` are read in this order: samples first, so that a trigger in the same tick sees who
    was on the core, then cores, so that triggers see a core's modes before its softirqs.
    """

    sources: list[Source]
    own_cost: OwnCost
    capture: TaskCapture | None = None
    refused: list[Trouble] = field(default_factory=list)
    # Of an address of the kernel; without samples there are no names.
    name_function: Callable[[int], str | None] = lambda _: None

    clocks: ClockWatch | None = None
    lookup: Lookup | None = None

    def close(self) -> None:
        for source in self.sources:
            source.close()
        if self.lookup is not None:
            self.lookup.close()


def open_sources(
    settings: Settings,
    clock: Clock,
    time_line: TimeLine,
    labels: Mapping[str, str] | None = None,
    broker: Broker | None = None,
    earlier: EarlierBoot | None = None,
    history_ns: int = 0,
) -> NodeSources:
    """`labels` are those the node was given; they are facts like the others. `broker` has
    CAP_SYS_PTRACE, if this process has given it up. `earlier` is the boot before this one, if
    nothing of this one is recorded yet. `history_ns`: how far back daemons are asked what happened;
    a recorder asks for nothing from before it started.
    """
    root = settings.host_root
    _allow_descriptors()
    cores = Cores(root)
    possible = cpus.parse(_read(root / "sys/devices/system/cpu/possible"))
    ticked: list[Source] = [cores, SoftirqDelay(root, possible), *_counters(root)]
    lookup = Lookup(root, start=broker.start if broker else start_process)
    opened = _open_sampler(settings, cores, lookup, broker)
    if settings.waits_ns:
        read_closely = broker.read if broker else None
        name_function = opened.name_function
        ticked.append(
            Waits(root, possible, settings.waits_ns, name_function, read_closely=read_closely)
        )
    for source in ticked:
        if source.period_s == 1.0:
            source.period_s = settings.tick_ns / NS_PER_S
    user_patterns = read_user_patterns(settings.patterns) if settings.patterns else ()
    kernel_log = KernelLog(root, time_line.from_log_clock, PatternSet(user_patterns))
    services = _service_sources(settings, time_line, labels or {}, broker, history_ns)
    services += [BootEnd(root, earlier)] if earlier is not None else []
    services += [_jobs(settings, lookup, broker)] if settings.jobs_ns else []
    opened.clocks, opened.lookup = ClockWatch(clock, time_line), lookup
    opened.sources += [*ticked, *services, kernel_log, opened.clocks]
    return opened


def _counters(root: Path) -> list[Source]:
    """What the kernel counts, read at each tick or less often."""
    return [
        Softirqs(root),
        RunQueue(root),
        SoftnetStat(root),
        NetworkCounters(root),
        Pressure(root),
        Memory(root),
        Interrupts(root),
        Nics(root),
        Cgroups(root),
        Populations(root),
    ]


def _service_sources(
    settings: Settings,
    time_line: TimeLine,
    labels: Mapping[str, str],
    broker: Broker | None,
    history_ns: int,
) -> list[Source]:
    """What the node's own daemons and files say; each can be switched off."""
    root = settings.host_root
    sources: list[Source] = []
    if settings.units_ns:
        sources.append(Units(root, settings.units_ns, time_line.from_monotonic))
    if settings.containers_ns:
        sockets_of = broker.sockets if broker else None
        sources.append(
            Containers(root, settings.containers_ns, history_ns=history_ns, sockets_of=sockets_of)
        )
    if settings.own_facts is not None:
        read_own_facts(settings.own_facts)  # said at the start, and not an hour later
    if settings.facts_ns:
        sources.append(
            Facts(
                root,
                settings.facts_ns,
                labels,
                is_metadata_asked=settings.is_cloud_metadata_asked,
                own=settings.own_facts,
                start=broker.start if broker else start_process,
            )
        )
    if settings.ray_root:
        dashboard = Dashboard(settings.ray_dashboard) if settings.ray_dashboard else None
        sources.append(
            Ray(root, settings.ray_root, dashboard, root_of=broker.open_root if broker else None)
        )
    return sources


def _jobs(settings: Settings, lookup: Lookup, broker: Broker | None) -> Jobs:
    return Jobs(
        settings.host_root,
        settings.jobs_ns,
        lookup,
        settings.jobs_below,
        root_of=broker.open_root if broker else None,
        read_closely=broker.read if broker else None,
    )


def _open_sampler(
    settings: Settings, cores: Cores, lookup: Lookup, broker: Broker | None
) -> NodeSources:
    """The ledger's tracepoints need tracefs, the samples do not: without the one the other still
    works.
    """
    root, refused, ledger = settings.host_root, [], None
    try:
        ledger = CgroupLedger(root)
    except NecroscopeError as error:
        refused.append(Trouble("cgroup ledger", _LEDGER_TABLE, error))
    rings = Rings(settings.hz, ledger.tracepoint_ids if ledger else ())
    online = cpus.parse(_read(root / "sys/devices/system/cpu/online"))
    try:
        # The native library first: without it no ring needs to be opened.
        sampler = Sampler(rings, lookup, ledger, root)
        rings.follow(online, len(online))
    except NecroscopeError as error:
        rings.close()
        refused.append(Trouble(Sampler.name, Sampler.tables, error))
        own_cost = OwnCost(settings.hz, settings.budget_ratio)
        return NodeSources([own_cost], own_cost, None, refused)
    lookup.start()
    if settings.is_idle_filtered:
        possible = cpus.parse(_read(root / "sys/devices/system/cpu/possible"))
        sampler.filter_idle(len(possible))
    helpers = [broker.pid] if broker else []
    own_cost = OwnCost(
        settings.hz, settings.budget_ratio, rings.set_hz, lambda: [*helpers, *lookup.pids]
    )
    sources = [sampler, HotPlug(rings, lambda: cores.online), own_cost]
    capture = TaskCapture(sampler, lookup, root, broker=broker)
    return NodeSources(sources, own_cost, capture, refused, sampler.profile.kernel.name)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError as error:
        raise SourceUnavailable(
            f"cannot read {path}: {error.strerror}", "check --host-root"
        ) from None


def _allow_descriptors() -> None:
    """A sampling event and three tracepoints per core pass the usual soft limit of 1024 on a large
    machine.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft != hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
