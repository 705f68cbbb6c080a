"""Treatments: fixes of a verdict that are planned, shown, applied in small bites, and can be taken
back.
"""
