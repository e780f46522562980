"""HOW GOOD COULD IT BE: bounds and optimal solvers."""
