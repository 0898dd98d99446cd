"""Embedding clients: texts in, unit vectors out.

Read `client` (the protocol, and which client the environment configures), `mock` and `http`; behind `http` are
`providers` (the JSON of each API), `transport` (retries and the deadline), `batches` and `semaphore`.
`resumable` and `cache` wrap a client for jobs; `settings` and `variables` read the environment.
"""
