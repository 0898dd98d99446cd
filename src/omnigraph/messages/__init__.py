"""What a server and a remote graph say to each other, and both have to understand alike.

Read `values` (Python values in JSON), then `failures` (errors and their statuses).
"""
