"""Pages that people look at. Aggregates only.

facts, gather               what a report is made of
site, round                 the pages
data, attrition, map        their parts
words                       sentences and key figures
html, svg, write            elements, drawings, files
"""
