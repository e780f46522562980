"""JSON Schemas of our files, for editors and other programs.

``tasks``, ``cluster`` (the JSON image of the TOML file), ``prices`` (as they stand in a problem
file), ``library``, ``problem`` and ``schedule``. References between them are file names, so the
folder can be copied as it is. The readers do not need them.
"""
