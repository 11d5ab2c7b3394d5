"""Federations in one process: the reference that tests compare with, and the answer to 'would it help us?'

simulate    one federation, one night: the same two halves of an algorithm as between houses
repeats     many splits of the same patients, and what they say together
evidence    their results as one, for people and for JSON
"""
