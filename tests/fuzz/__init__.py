"""Generated command lines and damaged files, thousands of them: `python -m tests.fuzz`.

material    models and texts to damage       commands    lines, made from the parser itself
children    a command in a process with its limits   __main__    the rounds, the table, the results
"""
