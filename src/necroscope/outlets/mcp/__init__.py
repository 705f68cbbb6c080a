"""Answers for assistants: recordings and fleets by the Model Context Protocol, read-only and
bounded.
"""
