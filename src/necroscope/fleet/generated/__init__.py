"""A fleet to try: 500 nodes that do not exist, made of a real recording and facts drawn by lot.
Called `generated`.
"""
