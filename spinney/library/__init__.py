"""Spinney as a library: what `import spinney` offers to notebooks, on data frames as they are.

tables        a data frame becomes a site's cohort; a study is made of several
simulated     would it help? A whole federation in one process, and its answer
champion      the model that a house uses now
"""
