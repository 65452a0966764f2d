"""Judges: models that grade answers."""

from typing import TYPE_CHECKING

from pytest_llmeval._lazy import lazy_names

if TYPE_CHECKING:
    from pytest_llmeval.judges._asking import Asking, as_judge_errors
    from pytest_llmeval.judges._coordination import Reservation
    from pytest_llmeval.judges._deferral import DeferredRequest, ReadReplies, Requests
    from pytest_llmeval.judges._evaluators import JudgedEvaluator
    from pytest_llmeval.judges._judges import JudgeAccess, SuiteJudges
    from pytest_llmeval.judges._options import Budget, CachePlace, JudgeMode, JudgeOptions, StoreKind
    from pytest_llmeval.judges._panel import (
        Judgeable,
        Judgement,
        JudgePanel,
        Juror,
        JurorQuestion,
        JurorVerdict,
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
        Role,
        ShownMedium,
        UnaskedError,
        Usage,
        Verdict,
        uncounted_media,
    )
    from pytest_llmeval.judges._recordings import Judgements, JudgeScoreFile, Written
    from pytest_llmeval.judges._reduction import CascadeVerdict, PanelError, PanelVerdict, is_unsure
    from pytest_llmeval.judges._run_store import RunStore
    from pytest_llmeval.judges._service import CallLimit, JudgeService
    from pytest_llmeval.judges._spec import CascadeRule, JudgeSpec, PanelSpec, Price, Reduce
    from pytest_llmeval.judges._stored_judgement import ReplyStore, StoredJudgement
    from pytest_llmeval.judges.clients import JudgeConnection, as_client
    from pytest_llmeval.judges.clients._base import AsyncJudge, Patience
    from pytest_llmeval.judges.clients._embeddings import connect_embeddings
    from pytest_llmeval.judges.questions._forms import ReplyField, ReplyForm
    from pytest_llmeval.judges.questions._modes import ModeFile, TypedQuestion, is_unanswerable
    from pytest_llmeval.judges.questions._prompt_file import PromptFile
    from pytest_llmeval.judges.questions._replies import (
        FLAGS,
        UNNAMED_DEFECTS,
        ReplyObject,
        read_score,
        read_yes_no,
    )

_HOMES = {
    "_asking": (
        "Asking",
        "as_judge_errors",
    ),
    "_protocol": (
        "JudgeReply",
        "JudgeRequest",
        "Listing",
        "Message",
        "ShownMedium",
        "Mode",
        "Question",
        "Role",
        "UnaskedError",
        "Usage",
        "Verdict",
        "uncounted_media",
    ),
    "_coordination": ("Reservation",),
    "_deferral": ("DeferredRequest", "ReadReplies", "Requests"),
    "_evaluators": ("JudgedEvaluator",),
    "_judges": (
        "JudgeAccess",
        "SuiteJudges",
    ),
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
        "Juror",
        "JurorQuestion",
        "JurorVerdict",
        "Panel",
        "PanelQuestion",
    ),
    "_reduction": ("CascadeVerdict", "PanelError", "PanelVerdict", "is_unsure"),
    "_recordings": (
        "JudgeScoreFile",
        "Judgements",
        "Written",
    ),
    "_run_store": ("RunStore",),
    "_service": ("CallLimit", "JudgeService"),
    "_spec": (
        "CascadeRule",
        "JudgeSpec",
        "PanelSpec",
        "Price",
        "Reduce",
    ),
    "_stored_judgement": ("ReplyStore", "StoredJudgement"),
    "clients": (
        "JudgeConnection",
        "as_client",
    ),
    "clients._base": ("AsyncJudge", "Patience"),
    "clients._embeddings": ("connect_embeddings",),
    "questions._forms": ("ReplyField", "ReplyForm"),
    "questions._modes": (
        "ModeFile",
        "TypedQuestion",
        "is_unanswerable",
    ),
    "questions._replies": (
        "FLAGS",
        "ReplyObject",
        "UNNAMED_DEFECTS",
        "read_score",
        "read_yes_no",
    ),
    "questions._prompt_file": ("PromptFile",),
}
"""Module to the names that other packages use of it."""

__getattr__ = lazy_names(__name__, _HOMES)
