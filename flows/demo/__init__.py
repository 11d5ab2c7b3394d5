"""The made-up world at work: four hospitals and a coordinator on one machine, under one Prefect server.

prefect_server   a server on a free port, with a home of its own
setting          the world in a folder: data of the night, the servers behind them, houses that have joined each other
houses           all houses' flows of one night, in one process of their own
night            starts all that, watches, stops it
kept, serving    `spinney up` and `spinney down`: the same world, kept running
"""
