"""What systemd knows of its units, by its D-Bus interface."""
