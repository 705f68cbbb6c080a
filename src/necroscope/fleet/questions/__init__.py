"""Questions to a fleet, one file each: a question takes the lake and words, and gives a typed
answer with `as_json()`.
"""
