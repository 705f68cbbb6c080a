"""A session of Ray below a root, and a source that follows it."""

from collections import Counter
from pathlib import Path

from necroscope.model.reading import Moment, Reading
from necroscope.model.units import NS_PER_S
from necroscope.sources.ray.dashboard import Dashboard
from necroscope.sources.ray.ray import Ray

DATA = Path(__file__).parents[3] / "data/ray"

READ_NS = 1_794_793_400_000_000_000

HEALTH = (
    "[2026-11-16 01:41:05,492 W 1 1] (gcs_server) x.cc:9: Health check failed for node"
    f" {'ab' * 28}\n"
)

HANG = "ray.exceptions.GetTimeoutError: Get timed out: some object(s) not ready.\n"

FROZEN = {
    "ray_health_check_failed": 5,
    "ray_node_dead": 1,
    "ray_actor_died": 1,
    "ray_job_failed": 1,
    "ray_job_hang": 2,
}


def session(root: Path, name: str = "session_1") -> Path:
    logs = root / "tmp/ray" / name / "logs"
    logs.mkdir(parents=True)
    latest = root / "tmp/ray/session_latest"
    latest.unlink(missing_ok=True)
    latest.symlink_to(f"/tmp/ray/{name}")
    return logs


def make(root: Path, dashboard: Dashboard | None = None) -> Ray:
    return Ray(root, "/tmp/ray", dashboard, realtime=lambda: READ_NS)


def look(source: Ray, second: float) -> Reading:
    """A round begun at this second, taken when it is done."""
    at_ns = round(second * NS_PER_S)
    source.read(Moment(READ_NS, at_ns))
    source._work.wait(20)
    return source.read(Moment(READ_NS, at_ns + 1))


def kinds(reading: Reading) -> Counter[object]:
    return Counter(row[1] for row in reading.rows.get("events", []))
