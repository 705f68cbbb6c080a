"""When the node's condition is true, and when the API server is notified: at each change, and every
few minutes as well.
"""

from collections.abc import Callable
from typing import Any, Final

from necroscope.analysis.report import Incident
from necroscope.model.units import NS_PER_S
from necroscope.outlets.notify.kubernetes import Condition, reason_of, text_of

_HEARTBEAT_NS: Final = 300 * NS_PER_S
_MINUTE_NS: Final = 60 * NS_PER_S
_WELL: Final = ("NoCoreStarved", "no core was starved recently")


class NodeCondition:
    """True from the moment an incident is noted until `clear_after_ns` have passed since its end.
    No I/O but `send`.
    """

    def __init__(self, clear_after_ns: int) -> None:
        self._clear_after_ns = clear_after_ns
        self._until_ns = 0
        self._wanted = _WELL
        self._sent: Condition | None = None
        self._sent_ns = 0

    def note(self, incident: Incident, age_ns: int, now_ns: int) -> None:
        """`age_ns` is how long ago it was, by the recording's own time, which may be another than
        the clock's.
        """
        self._until_ns = max(self._until_ns, now_ns - max(0, age_ns) + self._clear_after_ns)
        self._wanted = (reason_of(incident), text_of(incident))

    def tell(self, now_ns: int, send: Callable[[Condition, int], None]) -> None:
        """Send it if it changed or was not sent for a while; what `send` raises is tried again by
        the next call.
        """
        is_true = now_ns < self._until_ns
        reason, message = self._wanted if is_true else _WELL
        is_known = self._sent is not None and self._sent.is_true == is_true
        since_ns = self._sent.since_ns if self._sent and is_known else now_ns
        condition = Condition(is_true, reason, message, since_ns)
        if condition != self._sent or now_ns - self._sent_ns >= _HEARTBEAT_NS:
            send(condition, now_ns)
            self._sent, self._sent_ns = condition, now_ns

    def as_json(self) -> dict[str, Any]:
        """Of the time whole minutes: while an incident goes on it moves at every look, and each
        change is a write to the disk.
        """
        sent = self._sent
        return {
            "until_ns": -(-self._until_ns // _MINUTE_NS) * _MINUTE_NS,
            "wanted": list(self._wanted),
            "sent": [sent.is_true, sent.reason, sent.message, sent.since_ns] if sent else None,
        }

    def restore(self, content: dict[str, Any]) -> None:
        reason, message = content["wanted"]
        self._until_ns, self._wanted = int(content["until_ns"]), (str(reason), str(message))
        self._sent = Condition(*content["sent"]) if content["sent"] else None
