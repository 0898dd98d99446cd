"""How a graph ages: what reads and writes cost after 10, 100, 1,000 and 5,000 one-row commits."""
