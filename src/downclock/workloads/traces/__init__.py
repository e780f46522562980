"""Traces of clusters: one reader a format, and the one way from a trace to a problem."""
