"""What a run leaves on disk, so that it can be gone on with.

checkpoints   models                     runfolder   checkpoints of one run, oldest to newest
moments       optimizer and random states by name
seals         checksums of files         locks       one process a folder
files         written whole or not at all
"""
