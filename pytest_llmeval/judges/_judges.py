"""The judges of a process."""

import json
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import to_builtins

from pytest_llmeval.core import Fault, LlmevalError, MissingExtraError, SuiteError
from pytest_llmeval.judges._options import JudgeOptions
from pytest_llmeval.judges._processes import process_name
from pytest_llmeval.judges._spec import JudgeSpec, PanelSpec
from pytest_llmeval.services import Activity, Background, RunCalls, Snapshot

if TYPE_CHECKING:
    from pytest_llmeval.judges._deferral import PendingVerdicts
    from pytest_llmeval.judges._evaluators import JudgedEvaluator
    from pytest_llmeval.judges._panel import JudgePanel, Juror
    from pytest_llmeval.judges._recordings import Judgements
    from pytest_llmeval.judges._run_store import RunStore, WorkingCache
    from pytest_llmeval.judges._service import CallLimit, JudgeService
    from pytest_llmeval.judges.clients import AsyncJudge

_USER = -1
"""The number of the simulated user among those whom a file asks; jurors are counted from 0."""

OwnJudge: TypeAlias = Callable[[], Any]
"""Makes the user's own judge when it is needed: that may take a key, stored verdicts take none.

It returns ``None`` for the judge that the suite names."""


@dataclass
class SuiteJudges:
    """The judges of all suite files and Python test files in one process of a run.

    Attributes:
        options: Of the run.
        background: Where calls are made.
        activity: Of this process.
        has_others: Whether other processes take part in the run.
    """

    options: JudgeOptions
    background: Background
    activity: Activity = field(default_factory=Activity)
    _by_file: "dict[Path, JudgePanel]" = field(default_factory=dict)
    _recorded: "dict[Path, Judgements]" = field(default_factory=dict)
    _users: "dict[Path, JudgePanel]" = field(default_factory=dict)
    _clients: "dict[tuple[Path, int], tuple[Any, AsyncJudge]]" = field(default_factory=dict)
    _embeddings: "dict[tuple[Path, str, str], JudgePanel]" = field(default_factory=dict)
    has_others: bool = False

    @cached_property
    def owner(self) -> str:
        """The id of this process in the judge cache, that no other has."""
        return f"{self.options.owner(self.options.worker)} {process_name()}"

    @cached_property
    def calls(self) -> RunCalls:
        """State that the calls of the run share, to judges and targets."""
        if not self.options.shares:
            return RunCalls(self.activity)
        return RunCalls.of_several_processes(self.activity, self._working)

    @cached_property
    def limit(self) -> "CallLimit":
        """The limit on calls in flight, shared with the other processes of the run."""
        from pytest_llmeval.judges._service import CallLimit

        options = self.options
        return CallLimit(options.concurrency, self._working if options.shares else None, self.activity)

    @cached_property
    def service(self) -> "JudgeService":
        """The service that asks."""
        from pytest_llmeval.judges._service import JudgeService

        return JudgeService(self.limit, self.store)

    @cached_property
    def store(self) -> "RunStore":
        """The store of the verdicts of the run."""
        from pytest_llmeval.judges._run_store import RunStore

        options = self.options
        store = RunStore(options.mode, self.limit, self._working, options.budget)
        self.background.closing.append(store.heart.aclose)
        return store

    @cached_property
    def _working(self) -> "WorkingCache":
        """The judge cache of this process."""
        from pytest_llmeval.judges._run_store import WorkingCache

        options = self.options
        return WorkingCache(options.cache, options.run, self.owner, options.concurrency, options.workers)

    def judge_of(
        self, asking: Path, spec: JudgeSpec | PanelSpec, display_path: str, *, priced: bool = True
    ) -> "JudgePanel":
        """The judges of a suite file or test file.

        Args:
            asking: The file.
            spec: The judge in the suite file.
            display_path: The name of the file in messages.
            priced: Whether it may be asked, so that a budget in USD needs its price.

        Raises:
            SuiteError: The recorded judgements have faults, or the budget limits money and no price is known.
        """
        if asking not in self._by_file:
            from pytest_llmeval.judges._panel import JudgePanel

            chosen = self._choose_judges(spec, display_path)
            recordings = self._recordings(asking, display_path)
            if isinstance(chosen, PanelSpec):
                jurors = [self._juror(judge, recordings, display_path, "judges", priced) for judge in chosen.judges]
                panel = JudgePanel.from_spec(chosen, jurors)
            else:
                panel = JudgePanel.of_one(self._juror(chosen, recordings, display_path, "judge", priced))
            # Targets may ask from threads of their own: all of them must get the panel that is connected.
            self._by_file.setdefault(asking, panel)
        return self._by_file[asking]

    def _recordings(self, asking: Path, display_path: str) -> "Judgements":
        """The recorded verdicts of a file."""
        if asking not in self._recorded:
            from pytest_llmeval.judges._recordings import Judgements

            path = Judgements.path_of(asking)
            reads = self.options.mode in ("auto", "replay", "record")
            recordings = Judgements.read(path, f"{display_path}: {path.name}") if reads else Judgements(path)
            self._recorded.setdefault(asking, recordings)
        return self._recorded[asking]

    def user_of(self, asking: Path, spec: JudgeSpec, display_path: str) -> "JudgePanel":
        """The model that plays the user in the conversations of a file, as a panel of one.

        Raises:
            SuiteError: As `judge_of`.
        """
        if asking not in self._users:
            from pytest_llmeval.judges._panel import JudgePanel

            recordings = self._recordings(asking, display_path)
            juror = self._juror(spec, recordings, display_path, "conversation.user", priced=True)
            self._users.setdefault(asking, JudgePanel.of_one(juror))
        return self._users[asking]

    def user_access(
        self,
        asking: Path,
        spec: JudgeSpec,
        display_path: str,
        own: OwnJudge | None,
        objects: "Mapping[str, Any] | None" = None,
    ) -> "JudgeAccess":
        """The model that plays the user, as one case's conversation asks it.

        Args:
            asking: The file.
            spec: The model.
            display_path: The file as messages name it.
            own: The user's own judge, if any.
            objects: Names of models to clients that Python passes by value.

        Raises:
            SuiteError: As `judge_of`.
        """
        return UserAccess(self.user_of(asking, spec, display_path), self, asking, spec, own, objects)

    def open_user(
        self, asking: Path, spec: JudgeSpec, own: OwnJudge | None, objects: "Mapping[str, Any] | None" = None
    ) -> None:
        """Connect the model that plays the user; the fixture ``judge_client`` plays it for the provider fixture.

        Args:
            asking: The file.
            spec: The model.
            own: The user's own judge, if any.
            objects: Names of models to clients that Python passes by value; one that is named plays the user.

        Raises:
            JudgeError: The fixture returned something that cannot reply.
        """
        __tracebackhide__ = True
        (juror,) = self._users[asking].jurors.values()
        judge = (objects or {}).get(spec.model or "")
        if judge is None and own is not None and spec.provider == "fixture":
            judge = own()
        self._connect(juror, spec, judge, (asking, _USER))

    def _juror(
        self, chosen: JudgeSpec, recordings: "Judgements", display_path: str, place: str, priced: bool
    ) -> "Juror":
        """A judge of a suite by its settings, with its recordings."""
        from pytest_llmeval.judges._panel import Juror

        model = chosen.model or JudgeSpec.OWN
        price = chosen.known_price
        if priced and price is None and self.options.budget.usd is not None and self.store.asks:
            fault = (
                f"found the judge {model!r} without a known price, but --llmeval-budget limits USD: "
                f"expected 'price: {{input: USD, output: USD}}' (per million tokens) under {place!r}"
                f"{MissingExtraError.price_hint()}"
            )
            raise SuiteError([Fault(display_path, 0, 0, place, fault)])
        return Juror(model, chosen.request_parameters(), recordings, price=price, way=chosen.way, spec=chosen)

    def _choose_judges(self, spec: JudgeSpec | PanelSpec, display_path: str) -> JudgeSpec | PanelSpec:
        """The judges that options name in place of the suite's."""
        try:
            return self.options.chosen(spec)
        except ValueError as error:
            fault = f"does not fit --llmeval-judge-model or --llmeval-judge-base-url: {error}"
            raise SuiteError([Fault(display_path, 0, 0, "judge", fault)]) from None

    def open(
        self,
        asking: Path,
        spec: JudgeSpec | PanelSpec,
        own: OwnJudge | None,
        objects: "Mapping[str, Any] | None" = None,
    ) -> None:
        """Connect a judge, or the jurors of a panel, to their clients.

        Args:
            asking: The file.
            spec: The judge in the suite file.
            own: The user's own judge, if any, which stands in for every juror: the request names the model.
            objects: Names of models to clients that Python passes by value.

        Raises:
            JudgeError: The fixture returned something that cannot judge.
        """
        __tracebackhide__ = True

        jurors = self._by_file[asking].jurors.values()
        asked_for = self.options.model
        # A model that the user names for this run is asked itself: its name is what the verdicts are kept under.
        is_own = asked_for is None or asked_for.startswith("fixture:")
        judge = own() if own is not None and is_own else None
        for number, (juror, chosen) in enumerate(zip(jurors, self.options.chosen(spec).jurors, strict=True)):
            by_value = (objects or {}).get(chosen.model or "")
            self._connect(juror, chosen, by_value if judge is None else judge, (asking, number))

    def _connect(self, juror: "Juror", chosen: JudgeSpec, judge: Any, place: tuple[Path, int]) -> None:
        """Connect a judge to its client: that of the user's object, or of the model."""
        __tracebackhide__ = True
        from pytest_llmeval.judges.clients import JudgeConnection, as_client

        held = self._clients.get(place)
        if held is not None and held[0] is judge:
            return
        if judge is None and chosen.provider in (None, "fixture"):
            if chosen.model is not None:
                expected = "define the fixture in conftest.py, and return the judge from it"
                juror.absent = f"found the judge {chosen.model!r} without a fixture judge_client: {expected}"
            return  # reported by each case that uses the judge
        if judge is None:
            client = JudgeConnection(chosen).open(on_rate_limit=self._slow_down, calls=self.calls)
        else:
            client = as_client(judge, timeout=chosen.timeout)
        juror.client = client  # first: another thread takes a client that is listed as connected
        self._clients[place] = judge, client
        if judge is None:
            self.background.closing.append(client.aclose)

    def own_of(self, asking: Path, evaluator: "JudgedEvaluator", spec: JudgeSpec) -> "JudgePanel":
        """The model that an evaluator of a file asks itself; nothing is opened before its first call.

        Args:
            asking: The file, whose judge is known.
            evaluator: The evaluator.
            spec: Its model.
        """
        place = asking, str(spec.model), f"{spec.base_url} {spec.api_key_env}"
        if place not in self._embeddings:
            from pytest_llmeval.judges._panel import JudgePanel, Juror

            model, price, way = place[1], spec.known_price, place[2]
            recordings = next(iter(self._by_file[asking].jurors.values())).recordings
            juror = Juror(model, spec.request_parameters(), recordings, price=price, way=way, writes=False)
            if price is None and self.options.budget.usd is not None:
                juror.absent = (
                    f"found the model {model!r} without a known price, but --llmeval-budget limits USD: expected "
                    f"'price: {{input: USD, output: 0}}' (per million tokens) beside the model"
                    f"{MissingExtraError.price_hint()}"
                )
            else:
                from pytest_llmeval.judges.clients import JudgeConnection

                client = JudgeConnection(spec).open(own=evaluator, on_rate_limit=self._slow_down, calls=self.calls)
                self.background.closing.append(client.aclose)
                juror.client = client
            self._embeddings.setdefault(place, JudgePanel.of_one(juror))
        return self._embeddings[place]

    def _slow_down(self, _wait: float | None) -> None:
        self.limit.slow_down()

    def snapshot(self) -> Snapshot:
        """The activity of the run's processes, as far as they have shown it."""
        if not self.has_others:
            return self.activity.snapshot()
        if not self.options.cache.is_coordinated:
            return Snapshot()
        from pytest_llmeval.judges._run_store import ACTIVITY

        texts = self._working.coordination.get_answers(self.options.run, ACTIVITY)
        return Snapshot.of_all(Snapshot(*json.loads(text)) for text in texts)

    def list_pending(self) -> "PendingVerdicts":
        """Write the requests that the processes of the run have deferred.

        Raises:
            LlmevalError: The database of the run cannot be used.
            OSError: A file cannot be written.
        """
        return self.store.deferral.list_run()

    def deferred_requests(self) -> dict[str, dict[str, Any]]:
        """The requests that the processes of the run have deferred, by id, as JSON data."""
        if not self.options.cache.is_coordinated:
            return {}
        pending = self.store.deferral.requests.pending(self.options.run)
        return {request.id: to_builtins(request) for request in pending}

    def enlist(self) -> str:
        """The id of the run, for another process that takes part in it."""
        self.has_others = True
        return self.options.run

    def bury(self, worker: str) -> int:
        """Release the leases of a dead process, so that others of the run can make its calls; return how many it had.

        Its own item has one of them if its target was asked early, as those of the next items are.
        """
        held = 0
        if self.options.cache.is_coordinated:
            with suppress(LlmevalError):  # its leases expire anyway
                held = self._working.coordination.held_by(self.options.owner(worker))
                self._working.coordination.end(self.options.owner(worker))
        return held

    def close(self, *, whole_run: bool) -> None:
        """Close the cache, and delete the run's messages in it.

        Args:
            whole_run: Whether the run ends, not only this process.
        """
        shared = self.has_others and self.options.cache.is_coordinated
        if "_working" not in vars(self) and not shared:
            return
        if whole_run and (self._working.is_coordinated or shared):
            with suppress(LlmevalError):  # it is forgotten later, as that of a run that was killed
                self._working.coordination.forget_run(self.options.run)
        self._working.close()


@dataclass(frozen=True)
class JudgeAccess:
    """The judge of a suite file or Python test file, as one test may ask it.

    Attributes:
        panel: The judges that are asked.
        judges: The judges of the process, which connect it.
        asking: The file.
        spec: The judge in the suite file.
        own: The user's own judge, if any.
        objects: Names of models to clients that Python passes by value.
    """

    panel: "JudgePanel"
    judges: SuiteJudges
    asking: Path
    spec: JudgeSpec | PanelSpec
    own: OwnJudge | None = None
    objects: "Mapping[str, Any] | None" = None

    def panel_for(self, evaluator: "JudgedEvaluator") -> "JudgePanel":
        """The judges that an evaluator asks."""
        spec = evaluator.own_model
        return self.panel if spec is None else self.judges.own_of(self.asking, evaluator, spec)

    def open(self) -> None:
        """Connect the judge to its client if a model may be asked at all.

        Raises:
            JudgeError: The fixture ``judge_client`` returned something that cannot judge.
        """
        __tracebackhide__ = True
        if self.judges.store.asks:
            self.judges.open(self.asking, self.spec, self.own, self.objects)


@dataclass(frozen=True)
class UserAccess(JudgeAccess):
    """The model that simulates the user for a suite, as one case's conversation asks it; its panel is one model."""

    spec: JudgeSpec

    def open(self) -> None:
        """Connect the model to its client if a model may be asked at all.

        Raises:
            JudgeError: The fixture ``judge_client`` returned something that cannot reply.
        """
        __tracebackhide__ = True
        if self.judges.store.asks:
            self.judges.open_user(self.asking, self.spec, self.own, self.objects)
