"""Algorithms between houses, apart from any transport. Pure.

seam                            a program that asks, a site that answers
messages, disclosure            what passes between houses, and what may
noise                           what makes a sum private, in shares
secure_sum, summing, tally      the counts of all sites, and nobody's in particular
welcome, gathering, forest_site          both halves of every algorithm that exchanges forests
scoring, filling                weights and means by secure sums
"""
