"""The judge of validity: rules, each independent of everything that makes schedules."""
