"""The formats of problems: clusters, tasks, prices, libraries of them; errors name their line."""
