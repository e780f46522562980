"""HOW TO DECIDE AND HOW GOOD COULD IT BE: the catalogue, bounds, and a room for each family."""
