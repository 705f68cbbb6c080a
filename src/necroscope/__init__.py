"""necroscope: a flight recorder for Linux nodes that names what starved a core, and who did it."""

__version__ = "0.1.0"
