"""HOW TO DECIDE: the interface, the parts of list policies, and the catalogue."""
