"""The OMOP Common Data Model: `records` says what its tables mean, `model` which of them a database has, `concepts` how
codes are called, and `rows` makes events of all that.
"""
