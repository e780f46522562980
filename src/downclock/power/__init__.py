"""HOW FAST, HOW HUNGRY: operating points, profiles, frontiers, fits."""
