"""A made-up world: hospitals whose patients have heart failure, and who of them is back within 30 days of discharge.

words       codes and units: the study's, and the habits of hospitals that write them in their own way
hospitals   how the hospitals differ from each other
lives       the patients: conditions, stays, what happens between them
charts      what is measured, diagnosed and prescribed during these lives
history     all of it as patients and events of one hospital, up to the end of some day
fhir, sql   the same history as NDJSON and in a database; table: as the finished table of the study
site        the files of a hospital: data in one of these forms, and the site.yaml that reads them
study.yaml  the study that all of them sign

Nobody in this world ever lived. The same seed makes the same world.
"""
