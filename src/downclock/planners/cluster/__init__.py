"""Our planner for clusters: one board, its searches and its bounds."""
