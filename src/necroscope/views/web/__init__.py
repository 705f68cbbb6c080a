"""The time machine in the browser: a server on loopback over a recording, and the page it
serves.
"""
