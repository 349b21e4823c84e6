"""The built wheel in places unlike a developer's checkout: `python -m tests.anywhere`.

places      environments and folders       page    TRIED.md, written from the tables
__main__    what is tried in them
"""
