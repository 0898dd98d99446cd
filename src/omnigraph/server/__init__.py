"""The HTTP server: graphs for programs in any language, and for remote graphs of this one.

Read `routes` first, the one table of what can be requested; `reading` and `writing` answer, as plain functions
that run in threads. `application` is the way of a request: token, graph, admission, body, engine, answer. `run`
starts and stops a server. The OpenAPI document (`openapi`) is made of the same table.
"""
