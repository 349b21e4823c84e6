"""Training killed again and again: `python -m tests.torture`.

jobs        what is trained, from the command line       children    processes that are killed, and when
power       a disk whose power fails                     __main__    kills and faults, the table, the results
"""
