"""Generated command lines and damaged files, hundreds of them, in `make proofs`.

material    models and texts to damage       commands    lines, made from the parser itself
children    a command in a process with its limits
"""
