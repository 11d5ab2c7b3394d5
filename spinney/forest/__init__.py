"""Trees, from growing to running rows through them. Pure.

grow        a site's own trees, on bootstraps of patients
export      which of them may travel, and how they are rounded
tree        what a tree is: read-only arrays in preorder
codec       the bytes of a forest
traverse    rows through trees
fence       foreign trees, without what they say of values that nobody here was trained on
score       confusion counts of every tree
votes       weighted votes of many ensembles in one pass
"""
