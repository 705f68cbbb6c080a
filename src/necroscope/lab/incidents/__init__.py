"""Incidents: one file each, whose docstring is its story and whose class is its `Scenario`."""
