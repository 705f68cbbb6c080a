"""Flame graphs and heat maps as self-contained pictures and pages: nothing is fetched, and every
name is escaped.
"""
