"""Is this house fit for the night? Looks at everything that a night needs, and changes nothing.

findings    what can be seen on this machine: Python, packages, home, keys, disk, clock
reach       what has to be reached: Prefect, exchange, data, registry
verify      everything that the house keeps, read as a whole
"""
