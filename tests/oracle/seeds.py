"""The cohorts that every test run looks at, chosen so that each fault shows in one of them."""

RESOURCES = (0, 1, 5, 6, 7, 8, 11, 12, 15, 18, 19, 22, 32, 37, 42)
ROWS = (0, 1, 2, 3, 5, 7, 15, 18, 21, 23, 26, 29, 41)
RULES = (0, 3, 7, 8, 10, 14, 18, 28, 29, 49, 51, 59)
GROUPS = (0, 1, 2, 3, 4, 5, 16, 47)
COVERAGE = (7, 11, 18, 26, 31)
OMOP = (0, 1, 5, 11, 12, 17, 23, 57)
FINISHED = tuple(range(10))
