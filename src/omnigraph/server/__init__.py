"""The HTTP server: graphs for programs in any language, and for remote graphs of this one.

Read `routes.table` first, the one table of what can be requested; the functions of `answers` answer, in threads.
`application` is the way of a request: token, graph, policy, admission, body, engine, answer. `transfer` is how
bodies come and go, `observing` what is seen of requests; `run` starts and stops a server. The OpenAPI document
(`routes.openapi`) is made of the same table.
"""
