"""The kernel log: lines of /dev/kmsg (or of the journal, or of a syslog file), and the events they
tell.
"""
