"""Plain rivals of our algorithms: what somebody writes who follows a paper line by line."""
