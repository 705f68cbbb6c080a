"""A supervisor unit under a real systemd that removes and re-creates a real container: is it named?"""
