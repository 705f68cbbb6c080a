"""Was a unit enabled by the image's vendor, and never once well? No operator asked for it, so no
operator looks at it.
"""

from typing import Final

from necroscope.analysis.checkup.finding import Finding, Level, NamedRow, NodeSnapshot

QUESTION: Final = "vendor-unit"
_VENDOR_DIRECTORIES: Final = ("/usr/lib/systemd/", "/lib/systemd/", "/run/systemd/")
_ENABLED: Final = frozenset({"enabled", "enabled-runtime"})
_NOT_WELL: Final = frozenset({"failed", "activating"})


def examine(node: NodeSnapshot) -> list[Finding]:
    return [_finding(row) for row in node.newest("units", "unit") if _is_left_behind(row)]


def _is_left_behind(row: NamedRow) -> bool:
    is_vendors = row["preset"] == "enabled" and str(row["fragment"] or "").startswith(
        _VENDOR_DIRECTORIES
    )
    return (
        is_vendors
        and row["file_state"] in _ENABLED
        and row["active_state"] in _NOT_WELL
        and row["result"] != "success"
    )


def _finding(row: NamedRow) -> Finding:
    unit = row["unit"]
    title = (
        f"{unit} is enabled by the vendor and does not come up: {row['active_state']},"
        f" {row['result']}"
    )
    hint = f"unused? systemctl disable --now {unit}; used? journalctl -u {unit}"
    return Finding(QUESTION, Level.NOTICE, title, (f"unit file {row['fragment']}",), hint)
