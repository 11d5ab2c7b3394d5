"""Great Expectations: the rules of a study as a suite, and results as counts."""
