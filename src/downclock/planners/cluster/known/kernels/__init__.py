"""Loops of the search over whole plans."""
