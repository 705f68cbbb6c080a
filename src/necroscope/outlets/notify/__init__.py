"""Tells others of a node's new incidents: a webhook, Kubernetes. The process lives for weeks:
standard library only.
"""
