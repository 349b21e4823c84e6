"""Real text, fetched from where it is published, only when somebody asks for it.

registry (.json)   what there is: upstream commit, sha256 of each file, licence, citation, layout
fetch · lock       files over HTTP, resumed and checked; one process at a time
builders           upstream files -> the layout that `load_corpus` and `load_pairs` read, and its splits
folder             where corpora lie, the card of each, and whether it is whole
given              the same from a folder, for machines without a network
get                all of it together: the command `tinytx data get`
"""
