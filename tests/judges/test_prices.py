"""What judges cost: the user's price, the published one, or unknown."""

import socket
from typing import Any

import pytest

from pytest_llmeval.judges import JudgeSpec, Price, Usage

OWN = Price(input=1.0, output=2.0)


@pytest.mark.parametrize(
    ("model", "price"),
    [
        ("openai:gpt-4o-mini", Price(0.15, 0.6)),
        ("pydantic-ai:openai:gpt-4o-mini", Price(0.15, 0.6)),
        ("anthropic:claude-sonnet-4-5", Price(3.0, 15.0)),
        ("openai:no-such-model", None),
        ("openai:claude-sonnet-4-5", None),
        ("pydantic-ai:no-such-provider:gpt-4o-mini", None),
        ("pydantic-ai:test", None),
        ("fixture:gpt-4o-mini", None),
        (None, None),
    ],
)
def test_published_prices_are_known_and_others_unknown(model: str | None, price: Price | None) -> None:
    assert JudgeSpec(model).known_price == price


def test_a_server_of_ones_own_has_no_published_price() -> None:
    assert JudgeSpec("openai:gpt-4o-mini", base_url="http://localhost:8000/v1").known_price is None


@pytest.mark.parametrize("base_url", [None, "http://localhost:8000/v1"])
@pytest.mark.parametrize("model", ["openai:gpt-4o-mini", "openai:mine", None])
def test_the_users_price_comes_first(model: str | None, base_url: str | None) -> None:
    assert JudgeSpec(model, base_url=base_url, price=OWN).known_price == OWN


def test_a_model_listed_without_a_price_is_not_free(monkeypatch: pytest.MonkeyPatch) -> None:
    from genai_prices import data_snapshot
    from genai_prices.types import ClauseEquals, ModelInfo, ModelPrice, Provider

    listed = ModelInfo(id="m", match=ClauseEquals("m"), prices=ModelPrice())
    provider = Provider(id="openai", name="o", api_pattern="x", models=[listed])
    snapshot = data_snapshot.DataSnapshot(providers=[provider], from_auto_update=False)
    monkeypatch.setattr(data_snapshot, "_custom_snapshot", snapshot)
    assert JudgeSpec("openai:m").known_price is None


def test_looking_a_price_up_opens_no_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: Any, **__: Any) -> None:
        raise AssertionError("a connection was opened")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    assert JudgeSpec("openai:gpt-4o").known_price is not None


@pytest.mark.parametrize(
    ("price", "usage", "cost"),
    [
        (OWN, Usage(1_000_000, 500_000), 2.0),
        (OWN, Usage(0, 0), 0.0),
        (Price(0, 0), Usage(5, 5), 0.0),
        (OWN, Usage(None, 5), None),
        (OWN, Usage(5, None), None),
        (None, Usage(5, 5), None),
    ],
)
def test_cost_is_unknown_where_price_or_tokens_are(price: Price | None, usage: Usage, cost: float | None) -> None:
    assert usage.cost_usd(price) == cost
