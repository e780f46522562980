"""WHAT IS ASKED: tasks, their graph, the platform, prices, and files that hold them."""
