"""As many devices, removed a few at a time, so that others get their turn.

What it does: as `network-setup-convoy`, but the devices are removed twenty at a time, as pods come
and go on a busy node.

Seen in the wild: every node that starts and ends containers.

What must be seen: nothing wrong.
"""

from necroscope.lab.incidents.network_setup_convoy import SharedNetworkSetup
from necroscope.lab.measured import Measured
from necroscope.lab.scenario import Truth, reached
from necroscope.lab.stage import Stage


class NetworkSetupTurns(SharedNetworkSetup):
    name = "network-setup-turns"
    twin = "network-setup-convoy"
    seconds = 20
    pairs = 400
    at_once = 20

    def verify(self, stage: Stage, measured: Measured) -> Truth:  # noqa: ARG002
        worst_ms = max(map(measured.highest, self.logs))
        return Truth({"worst_wait_ms": reached("longest wait in ms", worst_ms, at_most=200)})
