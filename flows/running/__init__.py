"""How Prefect runs the flows of a house: its deployments, alerts, and the process that serves them."""
