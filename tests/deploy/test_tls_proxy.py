"""`deploy/nginx.conf` in a real nginx, with a certificate of its own, in front of a service."""

import re
import shutil
import ssl
import subprocess
from collections.abc import Iterator
from getpass import getuser
from pathlib import Path

import httpx2
import pytest

from tests.mongo.mongo_server import free_port
from tests.service.running_service import (
    RunningService,
    eventually,
    execution,
    hashing_settings,
    running,
)

NGINX = shutil.which("nginx") or shutil.which("nginx", path="/usr/sbin")
OPENSSL = shutil.which("openssl")
SAMPLE = Path(__file__).parents[2] / "deploy" / "nginx.conf"
NAME = "aftercall.example.org"

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(NGINX is None or OPENSSL is None, reason="needs Debian's nginx and openssl"),
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service that is told its name outside."""
    server = {"allowed_hosts": NAME, "public_url": f"https://{NAME}"}
    with running(hashing_settings(tmp_path_factory.mktemp("service"), server=server)) as service:
        yield service


@pytest.fixture(scope="module")
def client(
    service: RunningService, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[httpx2.Client]:
    """A client that speaks TLS to the proxy, and knows its certificate alone."""
    folder, port = tmp_path_factory.mktemp("nginx"), free_port()
    certificate, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(
        [
            str(OPENSSL), "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256",
            "-nodes", "-days", "2", "-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}",
            "-keyout", key, "-out", certificate,
        ],
        check=True, capture_output=True,
    )  # fmt: skip
    sample = SAMPLE.read_text(encoding="utf-8")
    sample = sample.replace("127.0.0.1:8799", service.url.removeprefix("http://"))
    sample = sample.replace("listen 443 ssl", f"listen 127.0.0.1:{port} ssl")
    sample = re.sub(r"/etc/nginx/tls/\S+\.pem", str(certificate), sample)
    sample = re.sub(r"/etc/nginx/tls/\S+\.key", str(key), sample)
    places = "".join(
        f"{name}_temp_path {folder / name};\n"
        for name in ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    )
    (folder / "nginx.conf").write_text(
        f"user {getuser()}; daemon off; pid {folder / 'pid'}; error_log {folder / 'error.log'};\n"
        f"events {{}}\nhttp {{\naccess_log off;\n{places}{sample}\n}}\n"
    )
    proxy = subprocess.Popen([str(NGINX), "-p", folder, "-c", folder / "nginx.conf"])
    try:
        trusted = ssl.create_default_context(cafile=str(certificate))
        with httpx2.Client(base_url=f"https://127.0.0.1:{port}", verify=trusted) as client:
            client.headers["host"] = NAME
            eventually(lambda: answers(client) or proxy.poll() is not None, 60)
            assert proxy.poll() is None, (folder / "error.log").read_text()
            yield client
    finally:
        proxy.terminate()
        proxy.wait(timeout=30)


def asked(client: httpx2.Client, path: str) -> httpx2.Response:
    """A GET under the proxy's name."""
    return client.get(path, extensions={"sni_hostname": NAME})


def answers(client: httpx2.Client) -> bool:
    """Whether the proxy is there."""
    try:
        return asked(client, "/readyz").status_code == 200
    except httpx2.TransportError:
        return False


def test_calls_go_through_and_metrics_do_not(client: httpx2.Client) -> None:
    """The host's name is let through as the caller wrote it, and the service takes no other."""
    sent = client.post("/executions", json=execution(), extensions={"sni_hostname": NAME})
    assert sent.status_code == 202
    assert asked(client, "/status").json()["executions"] == 1
    assert asked(client, "/metrics").status_code == 404
    refused = client.get(
        "/status", headers={"host": "other.example.org"}, extensions={"sni_hostname": NAME}
    )
    assert refused.status_code in (400, 403, 421)


def test_a_body_that_is_too_large_is_refused_by_the_service_itself(client: httpx2.Client) -> None:
    """Its answer says which setting it is."""
    large = execution(context="x" * (8 << 20))
    answer = client.post("/executions", json=large, extensions={"sni_hostname": NAME})
    assert answer.status_code == 413
    assert "AFTERCALL_LIMITS_BODY_BYTES" in answer.text or "bytes" in answer.text
