"""From weighted trees to the model that serves a site best, and the evidence for it. Pure.

weigh, personalise      how much each tree counts, and which model is chosen
blend                   trees and a logistic regression as one vote
choose                  the choice, the measurement and the champion's fate, in this order
validate, judge         on which rows candidates are compared, and whether one is better beyond noise
incumbent               the champion takes part in the choice
metrics, intervals      figures, and how sure they are
curves, measure         what may be shown of them, on rows that no choice has seen
model, saved            the classifier that a site keeps, and its form on disk
outcome, evidence       what a night came to
"""
