"""Containers: by the API of their daemon, by the names of log files, by cgroup paths."""
