"""Sets of codes and hierarchies that other people publish, read from files: no server is asked.

members           what a set means: single codes, and beginnings that mean all that begin so
hierarchy         which code is below which, in a file or by how ICD and ATC write their codes
set_files         the files of a code set: digests, bounds, and which kind of file each of them is
value_sets        FHIR ValueSet: expansion, or compose with includes, excludes and filters
code_systems      FHIR CodeSystem: concepts, properties, parents
code_tables       CSV and Parquet: lists of codes, with or without parents
resolve           what a code set of a study means, by its files
"""
