"""The built wheel in places unlike a developer's checkout: `python -m tests.anywhere`.

places      environments and folders       __main__    what is tried in them, and the table
"""
