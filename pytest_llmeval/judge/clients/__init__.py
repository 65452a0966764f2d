"""Clients of judges: how a model is asked, whoever serves it."""

__all__ = ("AsyncJudge", "as_client", "connect")

from pytest_llmeval.judge.clients.base import AsyncJudge
from pytest_llmeval.judge.clients.callables import as_client
from pytest_llmeval.judge.clients.connecting import connect
