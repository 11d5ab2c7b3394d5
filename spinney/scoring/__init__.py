"""The champion applied to patients whose outcome is open, written back, and watched. Sees patients.

score_night                 who is to be scored, what the champion says, where it is written
scores                      a score, and where it comes from
write_table, write_fhir     into the hospital's own table or FHIR server
predictions, monitor        what was said, held against what happened
"""
