"""Answers about a fleet as text. They take the JSON of an answer, which is the same from a lake and
from a collector.
"""
