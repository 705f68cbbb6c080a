"""Ray: what its log files, export events and dashboard say of deaths, losses and hangs."""
