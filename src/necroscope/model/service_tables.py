"""The tables of what the node's own daemons and files say, next to the kernel: units, containers,
facts.
"""

from typing import Final

from necroscope.model.table import Column, Table, Type

SERVICE_TABLES: Final = (
    Table(
        "units",
        "systemd's services, timers and all that failed, written when they change and at the start"
        " of a segment",
        "systemd's D-Bus interface",
        (
            Column("time", Type.INT64, "when, in ns UTC"),
            Column("unit", Type.CATEGORY, "unit, for example ecs.service"),
            Column(
                "load_state",
                Type.CATEGORY,
                "loaded, not-found, masked, ...; `unloaded` when systemd has dropped it",
            ),
            Column(
                "active_state",
                Type.CATEGORY,
                "active, inactive, activating, deactivating, reloading or failed",
            ),
            Column("sub_state", Type.CATEGORY, "running, exited, dead, auto-restart, ..."),
            Column(
                "result",
                Type.CATEGORY,
                "success, exit-code, signal, oom-kill, start-limit-hit, ...",
                nullable=True,
            ),
            Column(
                "restarts",
                Type.INT64,
                "automatic restarts since it was started by hand (systemd 235)",
                nullable=True,
            ),
            Column(
                "main_code",
                Type.INT32,
                "its end: 1 exited, 2 killed, 3 dumped core, 0 not yet",
                nullable=True,
            ),
            Column("main_status", Type.INT32, "its exit status or signal", nullable=True),
            Column("main_pid", Type.INT32, "main process, while it runs", nullable=True),
            Column(
                "started_ns",
                Type.INT64,
                "when the main process was last started, in ns UTC",
                nullable=True,
            ),
            Column(
                "changed_ns", Type.INT64, "when its state last changed, in ns UTC", nullable=True
            ),
            Column(
                "file_state",
                Type.CATEGORY,
                "enabled, disabled, static, masked, generated, transient, ...",
                nullable=True,
            ),
            Column(
                "preset",
                Type.CATEGORY,
                "what the vendor wants it to be: enabled or disabled",
                nullable=True,
            ),
            Column("fragment", Type.CATEGORY, "its unit file", nullable=True),
            Column("cgroup", Type.CATEGORY, "its cgroup path, while it has one", nullable=True),
            Column("starts", Type.CATEGORY, "unit that a timer starts", nullable=True),
            Column(
                "schedule",
                Type.CATEGORY,
                "of a timer, for example OnUnitActiveUSec=10s",
                nullable=True,
            ),
            Column("period_ns", Type.INT64, "of a timer", nullable=True),
            Column("last_ns", Type.INT64, "when a timer last elapsed, in ns UTC", nullable=True),
            Column("next_ns", Type.INT64, "when a timer elapses next, in ns UTC", nullable=True),
        ),
    ),
    Table(
        "containers",
        "containers of every runtime, written when they change and at the start of a segment",
        "the API of Docker and Podman, /var/log/pods and /var/log/containers, OCI bundles, cgroup"
        " paths",
        (
            Column("time", Type.INT64, "when, in ns UTC"),
            Column(
                "container",
                Type.CATEGORY,
                "the runtime's id; empty where only the name is known",
                nullable=True,
            ),
            Column(
                "runtime",
                Type.CATEGORY,
                "docker, podman, containerd, cri-o, kubernetes, ecs, lxc, machine",
                nullable=True,
            ),
            Column("name", Type.CATEGORY, "container name", nullable=True),
            Column("image", Type.CATEGORY, "image it was made from", nullable=True),
            Column("namespace", Type.CATEGORY, "Kubernetes namespace", nullable=True),
            Column("pod", Type.CATEGORY, "Kubernetes pod", nullable=True),
            Column("pod_uid", Type.CATEGORY, "Kubernetes pod uid", nullable=True),
            Column("qos", Type.CATEGORY, "guaranteed, burstable or besteffort", nullable=True),
            Column("cgroup", Type.CATEGORY, "cgroup path, where it was seen", nullable=True),
            Column(
                "state",
                Type.CATEGORY,
                "running, restarting, exited, ...; `gone` when it was removed",
                nullable=True,
            ),
            Column(
                "restarts",
                Type.INT64,
                "restarts by the runtime; in Kubernetes the number of its log file",
                nullable=True,
            ),
            Column("exit_code", Type.INT32, "of its last end", nullable=True),
            Column("oom_killed", Type.BOOL, "whether its last end was an OOM kill", nullable=True),
            Column("pid", Type.INT32, "its first process, while it runs", nullable=True),
            Column("started_ns", Type.INT64, "when it was last started, in ns UTC", nullable=True),
            Column("finished_ns", Type.INT64, "when it last ended, in ns UTC", nullable=True),
        ),
    ),
    Table(
        "facts",
        "facts in which nodes differ, written when they change and at the start of a segment"
        " (packages: hourly)",
        "procfs, sysfs, systemd, the package database, cloud-init; hashes of running services'"
        " executables",
        (
            Column("time", Type.INT64, "when, in ns UTC"),
            Column(
                "kind",
                Type.CATEGORY,
                "kernel, sysctl, module, unit_file, package, mount, nic, cpu, executable, ...",
            ),
            Column("name", Type.CATEGORY, "which one"),
            Column("value", Type.UTF8, "its value; null when it is gone", nullable=True),
        ),
    ),
)
