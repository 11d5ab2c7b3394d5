"""From events to a checked, encoded table in the vault. Sees patients, and reaches nothing that sends.

pull                        the whole way, from what a study asks to a cohort
events, selected_events     resources and rows become events; those that the study asks for
referred                    Medications and Encounters to which events refer
code_matches, code_counts   which codes a study means here, and how many of them there are
recipes, looks              which event belongs to which feature; features that read alike
feature_columns             figures as columns
engine                      events become a table
attrition, fates, flow      how many each rule leaves out; why; what of it may be told
imported_table              a finished table becomes a cohort
impute                      missing values filled where a study asks for it
vault, encoded              where cohorts are kept, as tables and as arrays
check_result, drift         is it like the study says, and like last night
gaps, accepted              what a site has nothing of, and what its people say of that
record_steps                where a study cuts finer than a site records
quality_docs                the page for the staff of the site
tree_membership, handover   who is in which tree; who is to be scored
objections, leaving         who has said no, and what a pull does about it
without, purge              what a source delivers, and what earlier nights have kept, without them
regrow                      trees that stay at home, in place of those that may vote no more
infer, summary              a first study from tables; columns in words
"""
