"""A client that has asked nothing, of a server that is stopped.

What it does: as `stopped-server`, but the client has all its answers when the server is stopped,
and sleeps in recv(2) until the server has something to say.

Seen in the wild: every connection that is kept open, to a container that is paused because nobody
needs it.

What must be seen: nothing wrong.
"""

from necroscope.lab.incidents.stopped_server import StoppedAnswers
from necroscope.lab.measured import Measurements
from necroscope.lab.scenario import Truth
from necroscope.lab.stage import Stage


class IdleClient(StoppedAnswers):
    name = "idle-client"
    twin = "stopped-server"
    questions = 5

    def verify(self, stage: Stage, measured: Measurements) -> Truth:
        return Truth({"stopped_s": self.stopped_s(stage, measured)})
