"""All of it is known now: what is best? Destroy and repair over whole plans of a cluster."""
