"""The judge of energy: the only place that adds joules."""
