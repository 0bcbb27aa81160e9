"""Health, JSON views and headers, over the routes without a browser."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from asgi_client import Client
from starlette.applications import Starlette
from starlette.middleware import Middleware
from store_samples import extreme_comparison
from test_store_comparisons import kept

from analysis.export import comparison_json
from analysis.verdict import judge
from api import routes
from api.security import SecurityHeaders, content_policy
from core.comparison import Comparison
from store import comparisons
from store.workspace import Workspace


@pytest.fixture
def workspace(tmp_path: Path) -> Iterator[Workspace]:
    with Workspace(tmp_path) as opened:
        yield opened


def client(workspace: Workspace, *, hosts: tuple[str, ...] = ()) -> Client:
    headers = Middleware(SecurityHeaders, policy="default-src 'self'", hosts=hosts)
    return Client(Starlette(routes=routes(served=lambda: workspace), middleware=[headers]))


def plain_comparison() -> Comparison:
    whole = extreme_comparison()
    return Comparison(
        id="abc123",
        reference=whole.reference,
        candidate=whole.candidate,
        settings=whole.settings,
        pairs=whole.pairs[1:],  # the one with a problem: its text is what must arrive
        unmatched_reference=whole.unmatched_reference,
    )


def test_a_healthy_server_says_so(workspace: Workspace) -> None:
    answer = client(workspace).request("GET", "/api/healthz")
    assert (answer.status, answer.json()) == (200, {"ok": True})


def test_a_server_that_cannot_write_is_not_healthy(workspace: Workspace, tmp_path: Path) -> None:
    (tmp_path / "jobs").rename(tmp_path / "away")
    assert client(workspace).request("GET", "/api/healthz").status == 503
    (tmp_path / "away").rename(tmp_path / "jobs")


def test_a_comparison_as_json_is_what_the_command_writes(
    workspace: Workspace, tmp_path: Path
) -> None:
    comparison = plain_comparison()
    comparisons.write(tmp_path / "comparisons", comparison, kept(comparison), owner="me")
    answer = client(workspace).request("GET", "/api/comparisons/abc123.json")
    expected = json.loads(json.dumps(comparison_json(comparison, judge(comparison))))
    assert (answer.status, answer.json()) == (200, expected)
    assert answer.headers["content-type"] == "application/json"


@pytest.mark.parametrize("name", ["nothing", "..", "%2e%2e%2fsecret", "ABC123"])
def test_an_unknown_comparison_is_404_with_what_to_do(workspace: Workspace, name: str) -> None:
    answer = client(workspace).request("GET", f"/api/comparisons/{name}.json")
    assert answer.status == 404
    assert "Compare the two runs" in answer.json()["hint"]


def test_every_answer_carries_the_headers_also_one_not_found(workspace: Workspace) -> None:
    for path in ("/api/healthz", "/nothing", "/api/comparisons/x.json"):
        headers = client(workspace).request("GET", path).headers
        assert headers["content-security-policy"] == "default-src 'self'"
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["referrer-policy"] == "same-origin"


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("localhost:8501", 200),
        ("LOCALHOST", 200),
        ("127.0.0.1:1", 200),
        ("[::1]:8501", 200),
        ("[::1]", 200),
        ("a.example.org", 200),
        ("example.org", 421),
        ("evil.test", 421),
        ("localhost.evil.test", 421),
        ("", 421),
    ],
)
def test_only_known_host_names_are_answered(workspace: Workspace, host: str, status: int) -> None:
    hosts = ("localhost", "127.0.0.1", "::1", "*.example.org")
    served = client(workspace, hosts=hosts)
    answer = served.request("GET", "/api/healthz", headers={"host": host})
    assert answer.status == status


def test_without_a_list_any_host_is_answered(workspace: Workspace) -> None:
    answer = client(workspace).request("GET", "/api/healthz", headers={"host": "any.test"})
    assert answer.status == 200


def test_the_policy_allows_the_inline_script_it_was_made_for_and_no_other() -> None:
    policy = content_policy("<html><script>one()</script><script src='x'></script></html>")
    # printf 'one()' | openssl dgst -sha256 -binary | base64
    assert "'sha256-HR7iaask9daLMRRskMI++QeJtjWDOjyPA6lGzYGzKW4='" in policy
    assert policy.count("sha256-") == 1
    assert "unsafe-eval" not in policy
    scripts = next(rule for rule in policy.split("; ") if rule.startswith("script-src"))
    assert "unsafe-inline" not in scripts
