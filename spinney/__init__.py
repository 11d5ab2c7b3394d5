"""Spinney: hospitals grow forests together, and no patient leaves the house.

The map, in the order in which data pass:

    settings, study     what all sites sign
    encode, parts       a table becomes a matrix; who is training, who is test
    grow, export        a local forest, and the trees of it that may travel
    tree, codec         what a tree is, and its bytes
    score               confusion counts of every tree, at every site
    secure_sum          the counts of all sites, and nobody's in particular
    federation          the seam: a program that asks, a site that answers
    algorithms          BOFRF and its relatives, one file each
    personalise         the model that serves this site best, and the evidence
    model               the classifier that a site keeps
    trial               a whole federation in one process, and many of them
"""
