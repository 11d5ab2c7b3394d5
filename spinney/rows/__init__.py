"""Rows as a study sees them, and what may be said of them. Pure.

read_as     words of a table that stand for numbers or groups
encode      a table becomes a matrix, scaled by the ranges of the study
recorded    in which steps values are recorded
parts       who trains, who validates, who tests
cohort      a site's patients as arrays
moments     means and deviations of columns
describe    the characteristic vector of a site
clusters    which sites are alike, by their vectors
plane       sites on a map
floors      how few are too few
"""
