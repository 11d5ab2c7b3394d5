"""FAIR4Health documents become a first study: what can be translated is, the rest is listed with its line.

A feature set (JSON of the PPDDM manager, also inside a data set, a data-mining model or a prospective study) has
variables, each a FHIR query and a FHIRPath behind a prefix.

imported    puts a study together
documents   the JSON, with the line of everything in it
notes       what was assumed and what is left out
queries     FHIR queries as choices of events
variables   variables as features and label
ranges      ranges from the statistics of FAIR4Health's agents
criteria    eligibility as a population
models      settings of the random forest
"""
