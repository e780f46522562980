"""THE SCHEDULER WITHOUT A CLOCK: events in, decisions out, no I/O."""
