"""Worlds that are drawn: what may go otherwise than estimated, and what then really happens."""
