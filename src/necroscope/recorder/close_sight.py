"""CAP_SYS_PTRACE leaves the recorder: a process of its own has it from then on, for the children
that need it.

With the capability a process reads and writes the memory of every other one. The recorder reads
what strangers wrote, for weeks, and needs it for little: the processes that name functions, collect
facts and ask py-spy, and three files below /proc.
"""

from necroscope.model import capabilities
from necroscope.recorder.task_capture import py_spy_command
from necroscope.settings import Settings
from necroscope.sources.facts import collector
from necroscope.sources.procfs.network_namespace import is_network_of_node
from necroscope.symbols import lookup_child
from necroscope.symbols.broker import Broker


def give_up_close_sight(settings: Settings) -> Broker | None:
    """Before any thread is started. None if there is nothing to give up; OSError if it cannot be,
    and then the recorder has the capability as before.
    """
    held = capabilities.held()
    if capabilities.SYS_PTRACE not in held:
        return None
    root = settings.host_root
    is_network_of_node(root)  # asked while it can be
    py_spy = py_spy_command()
    collecting = collector.command(
        root,
        set(),
        is_metadata_asked=settings.is_cloud_metadata_asked,
        own=settings.own_facts,
    )
    broker = Broker(
        root,
        [
            ("nothing", lookup_child.command(root)),
            ("stages", collecting),
            *([("number", py_spy)] if py_spy else []),
        ],
    )
    try:
        capabilities.keep(held - {capabilities.SYS_PTRACE})
    except OSError:
        broker.close()
        raise
    return broker
