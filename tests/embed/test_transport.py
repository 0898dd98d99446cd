"""Connections: when they are reused, how slow a server may be, and what proxies and certificates do."""

from __future__ import annotations

import datetime as dt
import ipaddress
import os
import subprocess
import sys
from base64 import b64encode
from dataclasses import replace
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from tests.embed.server import QUICK, EmbeddingServer, Reply, embedding_server

from omnigraph.embed.batches import BatchLimits
from omnigraph.embed.http import HttpClient
from omnigraph.errors import EmbeddingUnavailable

ONE_BY_ONE = BatchLimits(1, 1000)
ONCE = replace(QUICK, attempts=1)


class TestConnections:
    def test_requests_reuse_one_connection(self, server: EmbeddingServer) -> None:
        for text in "abcde":
            server.client().embed([text], 4, "document")
        assert (len(server.asked), len(server.connections)) == (5, 1)

    def test_threads_share_the_connections(self, server: EmbeddingServer) -> None:
        client = server.client(limits=ONE_BY_ONE, concurrency=3)
        client.embed(["first"], 4, "document")
        for portion in range(4):
            client.embed([f"{portion}-{number}" for number in range(6)], 4, "document")
        assert len(server.asked) == 25
        assert len(server.connections) <= 3

    def test_an_error_response_does_not_cost_the_connection(self, server: EmbeddingServer) -> None:
        server.replies = [Reply(503, b"busy"), Reply(429)]
        server.client().embed(["a"], 4, "document")
        assert (len(server.asked), len(server.connections)) == (3, 1)

    def test_a_forked_process_opens_its_own(self, server: EmbeddingServer) -> None:
        script = (
            "import os, sys\n"
            "from omnigraph.embed.http import HttpClient\n"
            "client = HttpClient('openai', 'mini', sys.argv[1])\n"
            "client.embed(['before'], 4, 'document')\n"
            "child = os.fork()\n"
            "client.embed(['child' if child == 0 else 'parent'], 4, 'document')\n"
            "if child: sys.exit(os.waitpid(child, 0)[1])\n"
        )
        subprocess.run([sys.executable, "-c", script, server.url], check=True)
        assert sorted(server.texts) == ["before", "child", "parent"]
        assert len(server.connections) == 2


class TestSlowServers:
    def test_a_body_that_trickles_in_ends_with_the_timeout(self, server: EmbeddingServer) -> None:
        server.replies = [Reply(trickles=0.1)]
        client = replace(server.client(), retry=replace(QUICK, timeout=1.0))
        assert client.embed(["a"], 4, "document").shape == (1, 4)
        assert len(server.asked) == 2

    def test_a_body_that_trickles_in_ends_with_the_deadline(self, server: EmbeddingServer) -> None:
        server.replies = [Reply(trickles=0.1)] * 9
        client = replace(server.client(), retry=replace(QUICK, deadline=0.5))
        with pytest.raises(EmbeddingUnavailable, match=r"did not answer: no answer within 0\.5 s; .*the deadline"):
            client.embed(["a"], 4, "document")
        assert len(server.asked) == 1

    def test_an_error_whose_body_trickles_in_keeps_its_status(self, server: EmbeddingServer) -> None:
        server.replies = [Reply(400, b"x" * 99, trickles=0.1)]
        client = replace(server.client(), retry=replace(QUICK, timeout=1.0))
        with pytest.raises(EmbeddingUnavailable, match="answered 400: Bad Request"):
            client.embed(["a"], 4, "document")


class TestProxies:
    def test_the_proxy_of_the_environment_is_used(
        self, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        address = server.url.removeprefix("http://").removesuffix("/v1")
        monkeypatch.setenv("HTTP_PROXY", f"http://ada:p%40ss@{address}")
        client = HttpClient("openai", "mini", "http://embeddings.invalid/v1", retry=QUICK)
        assert client.embed(["a"], 4, "document").shape == (1, 4)
        [asked] = server.asked
        assert asked.path == "http://embeddings.invalid/v1/embeddings"
        assert asked.headers["Host"] == "embeddings.invalid"
        assert asked.headers["proxy-authorization"] == f"Basic {b64encode(b'ada:p@ss').decode()}"

    def test_a_proxy_without_a_scheme(self, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("http_proxy", server.url.removeprefix("http://").removesuffix("/v1"))
        client = HttpClient("openai", "mini", "http://embeddings.invalid/v1", retry=QUICK)
        assert client.embed(["a"], 4, "document").shape == (1, 4)

    def test_hosts_of_no_proxy_are_reached_directly(
        self, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:1")
        monkeypatch.setenv("NO_PROXY", "localhost,127.0.0.1")
        server.client().embed(["a"], 4, "document")
        assert server.asked[0].path == "/v1/embeddings"

    @pytest.mark.parametrize(
        ("proxy", "reason"),
        [
            ("http://127.0.0.1:1", "the proxy failed: .*refused"),
            ("socks5://127.0.0.1:1", "unsupported scheme socks5"),
        ],
    )
    def test_a_proxy_that_fails_is_named(
        self, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch, proxy: str, reason: str
    ) -> None:
        monkeypatch.setenv("HTTP_PROXY", proxy)
        with pytest.raises(EmbeddingUnavailable, match=f"did not answer: .*{reason}"):
            replace(server.client(), retry=ONCE).embed(["a"], 4, "document")

    def test_tls_goes_through_a_tunnel(self, server: EmbeddingServer, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HTTPS_PROXY", server.url.removesuffix("/v1"))
        client = HttpClient("openai", "mini", "https://embeddings.invalid/v1", retry=ONCE)
        with pytest.raises(EmbeddingUnavailable, match="the proxy failed: Tunnel connection failed: 501"):
            client.embed(["a"], 4, "document")


class TestCertificates:
    @pytest.fixture
    def certificate(self, tmp_path: Path) -> Path:
        """A certificate for 127.0.0.1 that no authority has signed, with its key."""
        key = ec.generate_private_key(ec.SECP256R1())
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "127.0.0.1")])
        address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
        now = dt.datetime.now(dt.UTC)
        builder = x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        builder = builder.not_valid_before(now - dt.timedelta(days=1)).not_valid_after(now + dt.timedelta(days=1))
        signed = builder.add_extension(address, critical=False).sign(key, hashes.SHA256())
        pem = serialization.Encoding.PEM
        form, no_password = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
        path = tmp_path / "server.pem"
        path.write_bytes(signed.public_bytes(pem) + key.private_bytes(pem, form, no_password))
        return path

    def test_one_that_is_not_trusted_is_refused(self, certificate: Path) -> None:
        with embedding_server(certificate) as server:
            with pytest.raises(EmbeddingUnavailable, match=r"did not answer: .*certificate verify failed"):
                replace(server.client(), retry=ONCE).embed(["a"], 4, "document")
            assert server.asked == []

    def test_one_that_the_user_trusts_is_accepted(self, certificate: Path) -> None:
        script = (
            "import sys\n"
            "from omnigraph.embed.http import HttpClient\n"
            "HttpClient('openai', 'mini', sys.argv[1]).embed(['a'], 4, 'document')\n"
        )
        trusting = os.environ | {"SSL_CERT_FILE": str(certificate)}
        with embedding_server(certificate) as server:
            subprocess.run([sys.executable, "-c", script, server.url], env=trusting, check=True)
            assert server.texts == ["a"]
