"""Logistic regression by sums: what a site adds, what follows from the total, what it is in a model. Pure.

design      encoded rows as standardised columns, the same at every site
fit         gradients, curvatures and what one step makes of them; intercepts that stay at home
plan        how many numbers an epoch may open, and so which way to fit is allowed
terms       what all sites know of a common fit
votes       a fit at home: intercept, votes on patients that it has not seen
part        coefficients as part of a site's model
"""
