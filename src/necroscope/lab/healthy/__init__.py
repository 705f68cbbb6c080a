"""Machines with nothing wrong: busy ones, idle ones, and the harmless twins of incidents. One file
each.
"""
