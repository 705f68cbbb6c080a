"""The collector: takes what nodes push, keeps it in the lake before it says so, and answers
questions over it.
"""
