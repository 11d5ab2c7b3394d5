"""FHIR servers and resources: HTTP with patience, SMART, searches, Bulk Data, what a resource holds."""
