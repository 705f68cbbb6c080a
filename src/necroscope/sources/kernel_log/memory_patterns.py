"""Lines of memory that ran out, of storage and hardware that fail, of programs that crash
(oom_kill.c, nvme, ext4, sunrpc).
"""

from typing import Final

from necroscope.sources.kernel_log.pattern import COMM, NFS, OOM, Role, pattern

# Short words of the kernel's own before a name of up to 255 bytes: a crash that is printed in two
# records goes on with ` in FILE`, and `Task in /CGROUP` ends with the name.
_TASK_FIRST: Final = r"(?! in |Task in /)"
# blk_errors of block/blk-core.c.
_BLOCK_STATUS: Final = (
    r"I/O|timeout|(?:critical|recoverable|device|protection|operation|reservation|kernel|zone|dm"
    r"|nonblocking)[a-z ]{0,24}"
)
_KILLED: Final = (
    (
        rf"Killed process (?P<pid>\d+) \((?P<comm>{COMM})\),?(?: UID \d+,)?"
        r" total-vm:(?P<total_vm_kb>\d+)kB, anon-rss:"
    ),
    r"(?P<anon_rss_kb>\d+)kB, ",
    r"file-rss:(?P<file_rss_kb>\d+)kB(?:, shmem-rss:(?P<shmem_rss_kb>\d+)kB)?",
    (
        r"(?:, UID:(?P<uid>\d+) pgtables:(?P<page_tables_kb>\d+)kB"
        r" oom_score_adj:(?P<victim_score_adjust>-?\d+))?"
    ),
)

MEMORY_PATTERNS: Final = (
    # Who asked for memory, which is seldom who is killed.
    pattern(
        "oom.invoked",
        "oom_invoked",
        "oom-killer:",
        rf"{_TASK_FIRST}(?P<invoker>{COMM}) invoked oom-killer:"
        r" gfp_mask=0x(?P<gfp_mask_hex>[0-9a-f]+)(?:\((?P<gfp_flags>[^)]*)\))?",
        r"(?:, nodemask=\S+)?,",
        r" +order=(?P<order>-?\d+), oom_score_adj=(?P<score_adjust>-?\d+)$",
        family=OOM,
        traced=True,
    ),
    pattern(
        "oom.constraint",
        "oom_kill",
        "",
        r"^oom-kill:constraint=(?P<constraint>CONSTRAINT_\w+),nodemask=(?P<nodemask>[^,]*),cpuset=(?P<cpuset>[^,]*),",
        r"mems_allowed=[^,]*(?:,\d[^,]*)*,(?:global_oom|oom_memcg=(?P<memcg>[^,]*)),task_memcg=(?P<task_memcg>[^,]*),",
        rf"task=(?P<comm>{COMM}),pid=(?P<pid>\d+),uid=(?P<uid>\d+)$",
        prefix="oom-kill:",
        family=OOM,
        weight=1,
    ),
    pattern(
        "oom.killed",
        "oom_kill",
        "Killed",
        r"(?P<scope>Out of memory|Memory cgroup out of memory)(?: \(oom_kill_allocating_task\))?: ",
        *_KILLED,
        family=OOM,
        role=Role.ENDS,
        weight=1,
    ),
    # Until 4.18 in two lines; the one killed may be a child of the one chosen.
    pattern(
        "oom.killed_old",
        "oom_kill",
        "sacrifice",
        r"(?P<scope>Out of memory|Memory cgroup out of memory): Kill process"
        r" (?P<chosen_pid>\d+) \(",
        rf"(?P<chosen>{COMM})\) score (?P<score>\d+) ",
        r"or sacrifice child",
        family=OOM,
        weight=1,
    ),
    pattern(
        "oom.killed_child",
        "oom_kill",
        "Killed",
        "^",
        *_KILLED,
        family=OOM,
        role=Role.ENDS,
        weight=1,
    ),
    pattern(
        "oom.memcg_limit_old",
        "oom_kill",
        "limit",
        r"Task in (?P<task_memcg>\S+) killed as a result of limit of (?P<memcg>\S+)$",
        family=OOM,
        weight=1,
    ),
    pattern(
        "oom.memcg_usage",
        "oom_kill",
        "memory:",
        r"^memory: usage (?P<usage_kb>\d+)kB, limit (?P<limit_kb>\d+)kB, failcnt (?P<failures>\d+)",
        family=OOM,
        role=Role.JOINS,
    ),
    # Its few words of the kernel's may stand in a file's name: the task is a field, and not blamed.
    pattern(
        "memory.allocation",
        "page_allocation_failure",
        "allocation",
        rf"{_TASK_FIRST}(?P<task>{COMM}): page allocation ",
        r"(?:failure|stalls for (?P<stalled_ms>\d+)ms)[:,] order:(?P<order>\d+)",
    ),
    # `completion polled`: the device had finished, the interrupt was not served: the storage twin
    # of a starved NAPI.
    pattern(
        "nvme.timeout",
        "nvme_timeout",
        "nvme",
        r"nvme (?P<device>nvme\d+): I/O (?:tag )?(?P<tag>\d+)(?: \([^)]*\))?(?: opcode \S+(?:"
        r" \([^)]*\))?)? QID ",
        r"(?P<queue>\d+) timeout, ",
        r"(?P<action>completion polled|disable controller|reset controller|aborting)",
        alarm=True,
    ),
    pattern(
        "nvme.down",
        "nvme_reset",
        "nvme",
        r"nvme (?P<device>nvme\d+): controller is down; will reset: CSTS=0x(?P<csts_hex>[0-9a-f]+)",
        alarm=True,
    ),
    pattern(
        "ext4.error",
        "filesystem_error",
        "EXT4-fs",
        r"EXT4-fs error \(device (?P<device>[^)]+)\)(?:: | in )(?P<function>\w+):(?P<line>\d+):"
        r" (?P<what>.*)",
    ),
    pattern(
        "xfs.error",
        "filesystem_error",
        "XFS",
        r"^XFS \((?P<device>[^)]+)\): (?P<what>(?:metadata I/O|log I/O|Internal)"
        r" error|Corruption|Metadata cor",
        r"ruption|Filesystem has been shut down)",
    ),
    pattern(
        "block.io_error",
        "block_io_error",
        "sector",
        r"(?:(?:blk_update_request|print_req_error|end_request): )?",
        rf"(?P<what>{_BLOCK_STATUS}) error, dev (?P<device>\S+), sector (?P<sector>\d+)",
    ),
    # Mounts that are hard go on, soft ones give an error. Who waits can be killed, and is neither
    # iowait nor a hung task.
    pattern(
        "nfs.silent",
        "nfs_server_silent",
        "responding,",
        r"^(?:nfs|lockd): server (?P<server>\S+) not responding, (?P<then>still trying|timed out)",
        family=NFS,
        weight=1,
    ),
    pattern(
        "nfs.answers",
        "nfs_server_answers",
        "OK",
        r"^(?:nfs|lockd): server (?P<server>\S+) OK$",
        family=NFS,
    ),
    pattern(
        "hardware.error",
        "hardware_error",
        "Error]:",
        r"(?:mce: |\{\d+\})?\[Hardware Error\]: ",
        r"(?:CPU (?P<cpu>\d+): Machine Check(?: Exception)?: \S+ Bank (?P<bank>\d+): ",
        r"(?P<status_hex>[0-9a-f]+)",
        r"|(?P<what>Machine check events logged|Hardware error from APEI Generic Hardware Error"
        r" Source))",
    ),
    pattern(
        "nvidia.xid",
        "gpu_xid",
        "Xid",
        r"NVRM: Xid \(PCI:(?P<device>[0-9a-fA-F:.]+)\): (?P<xid>\d+)(?:,"
        r" pid='?(?:(?P<pid>\d+)|<unknown>)'?(?:, name=",
        r"(?P<comm>[^,]+))?)?",
    ),
    pattern(
        "nvidia.lost",
        "gpu_lost",
        "fallen",
        r"NVRM: (?:The NVIDIA )?GPU (?:at )?(?:PCI:)?(?P<device>[0-9a-fA-F:.]+?):? (?:GPU )?has"
        r" fallen off the bus",
    ),
    pattern("audit.backlog", "audit_overflow", "audit:", r"audit: backlog limit exceeded"),
    pattern(
        "segfault",
        "segfault",
        "segfault",
        rf"{_TASK_FIRST}(?P<comm>{COMM})\[(?P<pid>\d+)\]: segfault at ",
        r"(?P<address_hex>[0-9a-f]+) ip (?P<instruction_hex>[0-9a-f]+) sp [0-9a-f]+ error ",
        r"(?P<error>\d+)(?: in (?P<module>.+)\[[0-9a-f,]+\+[0-9a-f]+\])?",
        r"(?: likely on CPU \d+(?: \(core \d+, socket \d+\))?)?$",
    ),
)
