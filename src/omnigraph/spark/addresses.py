"""Addresses of Spark, tried before Spark itself tries them: it would wait for a minute, or for ten."""

from __future__ import annotations

import re
import socket
import time
from importlib.util import find_spec
from typing import Final

from omnigraph.errors import SparkUnavailable

CONNECT: Final = "sc://"
_STANDALONE: Final = "spark://"
_CONNECT_PORT: Final = 15002
_KNOWN: Final = re.compile(r"local(\[.*\])?|local-cluster\[.*\]|spark://.+|k8s://.+|yarn|sc://.+")
_PATIENCE: Final = 6.0
"""How many seconds all tries of an address may take together."""


def require_reachable(address: str) -> None:
    """Raise SparkUnavailable if an address is none of Spark, or if no process answers there."""
    if not _KNOWN.fullmatch(address):
        known = "local[*], spark://host:port, k8s://…, yarn and sc://host:port"
        raise SparkUnavailable(address, "that is no address of Spark", f"known are {known}")
    if address.startswith(_STANDALONE):
        _require_answer(address, _hosts(address, address.removeprefix(_STANDALONE).split(",")))
    elif address.startswith(CONNECT):
        host = address.removeprefix(CONNECT).partition("/")[0]
        found = _hosts(address, [host if ":" in host else f"{host}:{_CONNECT_PORT}"])
        _require_answer(address, found)
        if "use_ssl=true" not in address and "token=" not in address:
            _require_connect(address, *found[0])


def _hosts(address: str, named: list[str]) -> list[tuple[str, int]]:
    hosts = []
    for each in named:
        host, _, port = each.rpartition(":")
        if not host or not port.isdecimal():
            raise SparkUnavailable(address, f"'{each}' is not HOST:PORT", "write it as spark://host:7077")
        hosts.append((host.strip("[]"), int(port)))
    return hosts


def _require_answer(address: str, hosts: list[tuple[str, int]]) -> None:
    """Connect to one of the hosts."""
    tried, deadline = [], time.monotonic() + _PATIENCE
    for host, port in hosts:
        try:
            socket.create_connection((host, port), max(0.5, deadline - time.monotonic())).close()
        except OSError as error:
            tried.append(f"{host}:{port} ({error.strerror or error})")
        else:
            return
    raise SparkUnavailable(address, f"tried {', '.join(tried)}, and no process answered")


def _require_connect(address: str, host: str, port: int) -> None:
    """Make sure that a server at the port speaks the protocol of Spark Connect, where that can be known."""
    if find_spec("grpc") is None:
        return
    import grpc  # type: ignore[import-untyped]

    with grpc.insecure_channel(f"{host}:{port}") as channel:
        try:
            grpc.channel_ready_future(channel).result(_PATIENCE)
        except grpc.FutureTimeoutError:
            reason = f"tried {host}:{port}: a process answered, and it is no Spark Connect server"
            raise SparkUnavailable(address, reason) from None
