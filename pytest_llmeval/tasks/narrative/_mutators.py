"""Mutators of story annotations."""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final

from pytest_llmeval.core import AnswerChange, Case, Mutator, Neighbours
from pytest_llmeval.tasks.narrative._alignment import Alignment
from pytest_llmeval.tasks.narrative._base import NarrativeEvaluator
from pytest_llmeval.tasks.narrative._document import Event, Story, name_key, parse_document

_NOBODY: Final = "Nobody of this story"
_NO_LABEL: Final = "no such label"

_Document = dict[str, Any]


class _Annotation:
    """A predicted document that may be changed, aligned with the right one.

    Attributes:
        data: A copy of the document.
        stories: The alignment.
    """

    def __init__(self, data: Mapping[str, Any], stories: Alignment) -> None:
        self.data: _Document = json.loads(json.dumps(data))
        self.stories = stories
        events = self.data.get("narrative_events")
        listed = [event for event in events if isinstance(event, dict) and event] if isinstance(events, list) else []
        self._events = {id(event): raw for event, raw in zip(stories.predicted.events, listed, strict=False)}

    @property
    def events(self) -> list[tuple[Event, Event, _Document]]:
        """Right events with their partners, and these in the document."""
        pairs = ((right, partner) for right, partner in self.stories.events if partner is not None)
        return [(right, partner, raw) for right, partner in pairs if (raw := self._events.get(id(partner))) is not None]

    @property
    def gold(self) -> Story:
        """The right annotation."""
        return self.stories.gold


def _of_document(changes: Callable[[_Annotation, Neighbours], Iterable[Callable[[], object]]]) -> AnswerChange:
    """A mutator's change of a predicted story annotation: one of several possible ones, if any."""

    def changed(case: Case, near: Neighbours) -> Any:
        evaluator = next(
            candidate for candidate in near.evaluators.values() if isinstance(candidate, NarrativeEvaluator)
        )
        prediction = evaluator.reads.answer_in(case.prediction)
        data = parse_document(prediction)
        if data is None or not case.expected:
            return None
        annotation = _Annotation(data, evaluator.aligned(case))
        possible = list(changes(annotation, near))
        if not possible:
            return None
        near.rng.choice(possible)()
        return json.dumps(annotation.data, ensure_ascii=False) if isinstance(prediction, str) else annotation.data

    return changed


def _character_renamed(annotation: _Annotation, _near: Neighbours) -> Iterator[Callable[[], object]]:
    """Yield changes that rename a right character of a story annotation to a name nobody has."""

    def rename(name: str) -> None:
        for entry in annotation.data["characters"]:
            if isinstance(entry, dict) and str(entry.get("name", "")).strip() == name:
                entry.update(name=_NOBODY, alias="")

    for _, character in annotation.stories.characters:
        yield partial(rename, character.name)


def _event_dropped(annotation: _Annotation, _near: Neighbours) -> Iterator[Callable[[], object]]:
    """Yield changes that remove a right event from a story annotation."""
    events = annotation.data.get("narrative_events")
    for _, _, raw in annotation.events:
        others = [event for event in events or () if event is not raw]
        yield partial(annotation.data.update, narrative_events=others)


def _event_added(annotation: _Annotation, _near: Neighbours) -> Iterator[Callable[[], object]]:
    """Yield a change that adds an event to a story annotation that shares nothing with a right one."""
    if annotation.events:
        length = len(annotation.stories.text)
        span = {"start": length + 10, "end": length + 20}
        event = {"id": "no such event", "time_order": 10**6, "text_span": span}
        yield partial(annotation.data["narrative_events"].append, event)


def _right_relationships(
    annotation: _Annotation,
) -> Iterator[tuple[Event, tuple[str, str], _Document]]:
    """Yield the relationships of the prediction with the right event and the keys of agent and target."""
    for right, _, raw in annotation.events:
        values = raw.get("relationships")
        for relationship in values if isinstance(values, list) else ():
            if isinstance(relationship, dict):
                yield (
                    right,
                    (name_key(str(relationship.get("agent", ""))), name_key(str(relationship.get("target", "")))),
                    relationship,
                )


def _roles_swapped(annotation: _Annotation, _near: Neighbours) -> Iterator[Callable[[], object]]:
    """Swap agent and target of a right relationship, if the reverse is not also right."""
    for right, own, relationship in _right_relationships(annotation):
        ends = {(name_key(pair.agent), name_key(pair.target)) for pair in right.relationships}
        if own in ends and own[::-1] not in ends:
            yield partial(relationship.update, agent=relationship["target"], target=relationship["agent"])


def _sentiment(annotation: _Annotation, near: Neighbours) -> Iterator[Callable[[], object]]:
    """Give a right relationship the sentiment of another one, which it has nowhere in its event."""
    every = _sentiments(annotation.gold.events)
    for right, own, relationship in _right_relationships(annotation):
        here = _sentiments([right])
        ends = {(name_key(pair.agent), name_key(pair.target)) for pair in right.relationships if pair.sentiments}
        sentiment, free = relationship.get("sentiment"), sorted(every - here)
        if own in ends and free and isinstance(sentiment, str) and sentiment.strip() in here:
            yield partial(_set_one, relationship, "sentiment", free, near)


def _set_one(data: _Document, key: str, values: Sequence[str], near: Neighbours) -> None:
    """Set a key of a story annotation to one of several values, for a mutant."""
    data[key] = near.rng.choice(values)


def _sentiments(events: Iterable[Event]) -> set[str]:
    """The sentiments in the relationships of annotated events."""
    return {
        sentiment for event in events for relationship in event.relationships for sentiment in relationship.sentiments
    }


def _action(annotation: _Annotation, near: Neighbours) -> Iterator[Callable[[], object]]:
    """Give a right action the type of another event."""
    types = {gold_event.action["type"] for gold_event in annotation.gold.events if "type" in gold_event.action}
    for right, event, raw in annotation.events:
        own = right.action.get("type")
        if own is not None and event.action.get("type") == own and (free := sorted(types - {own})):
            yield partial(_set_one, raw["action_layer"], "type", free, near)


def _label(annotation: _Annotation, _near: Neighbours) -> Iterator[Callable[[], object]]:
    """Yield changes that replace a right label of a story annotation by one that no taxonomy has."""
    for right, event, raw in annotation.events:
        if "category" in right.action and event.action.get("category") == right.action["category"]:
            yield partial(raw["action_layer"].update, category=_NO_LABEL)


def _span(annotation: _Annotation, _near: Neighbours) -> Iterator[Callable[[], object]]:
    """Yield changes that move the span of a right event to where no right event is."""
    start = 10 + max(
        (gold_event.span[1] for gold_event in annotation.gold.events if gold_event.span is not None), default=0
    )
    for right, event, raw in annotation.events:
        if right.span is not None and event.span is not None:
            yield partial(raw.update, text_span={"start": start, "end": start + 10})


def _mutator(name: str, why: str, advice: str, change: Any, *components: str) -> Mutator:
    """A mutator of story annotations, for ``narrative`` and the evaluators of the named components."""
    names = ("narrative", *(f"narrative.{component}" for component in components))
    return Mutator(name, why, _of_document(change), advice, names)


def _other_story(case: Case, near: Neighbours) -> Any:
    """Annotate another story, which has none of the characters that are right."""
    right = _names(case.expected)
    return next((other.prediction for other in near.others if right and not right & _names(other.prediction)), None)


def _names(document: Any) -> set[str]:
    """The normalized names of the characters in a story annotation."""
    data = parse_document(document) or {}
    listed = data.get("characters")
    named = [item for item in listed if isinstance(item, Mapping)] if isinstance(listed, list) else []
    return {name_key(str(character.get("name", ""))) for character in named}


_COMPONENTS: Final = ("characters", "relationships", "sentiment", "action_layer", "text_span")

MUTATORS: Final = (
    Mutator(
        "other_story",
        "it annotates another story",
        _other_story,
        "a gate on overall_score",
        ("narrative", *(f"narrative.{component}" for component in _COMPONENTS)),
    ),
    _mutator(
        "character_renamed",
        "a character has a name that nobody has",
        "a gate on character_f1",
        _character_renamed,
        "characters",
    ),
    _mutator(
        "event_dropped",
        "an event is missing",
        "a gate on event_recall or event_accuracy",
        _event_dropped,
        *("relationships", "sentiment", "action_layer", "text_span"),
    ),
    _mutator("event_added", "an event never happens", "a gate on event_precision", _event_added),
    _mutator(
        "agent_and_target_swapped",
        "agent and target have changed places",
        "a gate on relationship_f1",
        _roles_swapped,
        "relationships",
    ),
    _mutator("sentiment_changed", "a sentiment is another one", "a gate on sentiment_f1", _sentiment, "sentiment"),
    _mutator("action_changed", "an action has another type", "a gate on action_type_accuracy", _action, "action_layer"),
    _mutator("label_invented", "no taxonomy has this label", "a gate on taxonomy_validity", _label, "action_layer"),
    _mutator("span_moved_away", "the span of an event is elsewhere", "a gate on overlap_ratio", _span, "text_span"),
)
"""Mutators of story annotations."""
