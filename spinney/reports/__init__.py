"""Pages that people look at. Aggregates only.

facts, gather               what a report is made of
site, round, data, map      the pages and their parts
words                       sentences and key figures
html, svg, write            elements, drawings, files
"""
