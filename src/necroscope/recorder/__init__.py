"""Never miss, never grow: when to read what, what to pin, what to drop; sources and segments joined
in one loop.
"""
