"""Stand-ins for hardware that is not there."""
