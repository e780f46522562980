"""Many runs from one file: problems × policies × seeds × parameters, on any number of machines.

`grid` reads the file into runs, `run` does one of them, `store` keeps what is done, `summary`
tells what came out, and `sweep` puts them together.
"""
