"""As many devices, removed a few at a time, so that others get their turn.

What it does: as `network-setup-convoy`, but the devices are removed twenty at a time, as pods come
and go on a busy node.

Seen in the wild: every node that starts and ends containers.

What must be seen: nothing wrong.
"""

from necroscope.lab.incidents.network_setup_convoy import SharedNetworkSetup


class NetworkSetupTurns(SharedNetworkSetup):
    name = "network-setup-turns"
    twin = "network-setup-convoy"
    seconds = 20
    pairs = 400
    at_once = 20
    worst_ms = 200
