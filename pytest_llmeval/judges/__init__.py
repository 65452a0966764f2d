"""Judges: models that grade answers."""

from typing import TYPE_CHECKING

from pytest_llmeval._lazy import lazy_names

if TYPE_CHECKING:
    from pytest_llmeval.judges._asking import Asking
    from pytest_llmeval.judges._deferral import Requests
    from pytest_llmeval.judges._evaluators import JudgedEvaluator
    from pytest_llmeval.judges._judges import JudgeAccess, SuiteJudges
    from pytest_llmeval.judges._needed_calls import NeededCalls
    from pytest_llmeval.judges._options import Budget, CachePlace, JudgeMode, JudgeOptions, StoreKind
    from pytest_llmeval.judges._panel import (
        Judgeable,
        Judgement,
        JudgePanel,
        Panel,
        PanelQuestion,
    )
    from pytest_llmeval.judges._protocol import (
        JudgeReply,
        JudgeRequest,
        Listing,
        Message,
        Mode,
        Question,
        UnaskedError,
        Usage,
        Verdict,
    )
    from pytest_llmeval.judges._recordings import Judgements, JudgeScoreFile
    from pytest_llmeval.judges._reduction import CascadeVerdict, PanelVerdict
    from pytest_llmeval.judges._spec import CascadeRule, JudgeSpec, PanelSpec, Price, Reduce
    from pytest_llmeval.judges._stored_judgement import ReplyStore, StoredJudgement
    from pytest_llmeval.judges.clients import JudgeConnection
    from pytest_llmeval.judges.clients._base import AsyncJudge, Patience
    from pytest_llmeval.judges.questions._forms import ReplyField, ReplyForm
    from pytest_llmeval.judges.questions._modes import ModeFile, TypedQuestion
    from pytest_llmeval.judges.questions._prompt_file import PromptFile
    from pytest_llmeval.judges.questions._replies import (
        DefectDetails,
        ReplyObject,
        read_score,
        read_yes_no,
    )

_HOMES = {
    "_asking": ("Asking",),
    "_protocol": (
        "JudgeReply",
        "JudgeRequest",
        "Listing",
        "Message",
        "Mode",
        "Question",
        "UnaskedError",
        "Usage",
        "Verdict",
    ),
    "_deferral": ("Requests",),
    "_evaluators": ("JudgedEvaluator",),
    "_judges": (
        "JudgeAccess",
        "SuiteJudges",
    ),
    "_needed_calls": ("NeededCalls",),
    "_options": (
        "Budget",
        "CachePlace",
        "JudgeMode",
        "JudgeOptions",
        "StoreKind",
    ),
    "_panel": (
        "JudgePanel",
        "Judgeable",
        "Judgement",
        "Panel",
        "PanelQuestion",
    ),
    "_reduction": ("CascadeVerdict", "PanelVerdict"),
    "_recordings": (
        "JudgeScoreFile",
        "Judgements",
    ),
    "_spec": (
        "CascadeRule",
        "JudgeSpec",
        "PanelSpec",
        "Price",
        "Reduce",
    ),
    "_stored_judgement": ("ReplyStore", "StoredJudgement"),
    "clients": ("JudgeConnection",),
    "clients._base": ("AsyncJudge", "Patience"),
    "questions._forms": ("ReplyField", "ReplyForm"),
    "questions._modes": (
        "ModeFile",
        "TypedQuestion",
    ),
    "questions._replies": (
        "DefectDetails",
        "ReplyObject",
        "read_score",
        "read_yes_no",
    ),
    "questions._prompt_file": ("PromptFile",),
}
"""Module to the names that other packages use of it."""

__getattr__ = lazy_names(__name__, _HOMES)
