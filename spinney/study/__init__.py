"""What all sites sign. Pure: no file, no clock, no network.

definition    population, index event, windows: how a table is read from events
fitting       whether the definition fits the features and the label
cuts          where trees may cut a feature
settings      features, label, forest, privacy, split, choice
study         all of it in one model with a digest, which is in every message
"""
