"""Algorithms between houses, apart from any transport. Pure.

seam                            a program that asks, a site that answers
messages, disclosure            what passes between houses, and what may
noise                           what makes a sum private, in shares
secure_sum, summing, tally      the counts of all sites, and nobody's in particular
welcome, gathering, forest_site          both halves of every algorithm that exchanges forests
scoring, filling                weights and means by secure sums
fixed_point, real_sums, moments          secure sums of real numbers
linear_sums, linear_candidates  a logistic regression of all sites by such sums
companion                       the same beside a forest
"""
