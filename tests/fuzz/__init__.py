"""Generated command lines, hundreds of them, in `make proofs`.

material    models and texts               commands    lines, made from the parser itself
children    a command in a process with its limits
"""
