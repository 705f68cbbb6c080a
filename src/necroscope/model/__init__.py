"""The words every part of necroscope speaks: units, names, clocks, tables, readings. Standard
library only.
"""
