"""Task graphs on one chip (gerards): clocks, search, bounds."""
