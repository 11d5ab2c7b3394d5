"""Who objects, and who agrees: the lists that a site keeps outside of Spinney, read anew for every pull.

identifiers    how a patient is called on a list and in a source, and when both are the same
lists          what every kind of list has in common, and what it says
file_list      a text file or a table
sql_list       a query
consents       FHIR Consent resources (R4)
"""
