"""Mutators of story annotations: characters, events, relationships, labels and spans."""

import json
from collections.abc import Callable, Mapping
from typing import Any, Final

from pytest_llmeval.core.case import Case
from pytest_llmeval.core.parts import own_or_answer
from pytest_llmeval.core.views import AnswerChange, Mutator, Neighbours
from pytest_llmeval.tasks.narrative.alignment import Alignment
from pytest_llmeval.tasks.narrative.base import NarrativeEvaluator
from pytest_llmeval.tasks.narrative.document import Event, Story, name_key, parse_document

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
        listed = [each for each in events if isinstance(each, dict) and each] if isinstance(events, list) else []
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


def _of_document(change: Callable[[_Annotation, Neighbours], bool]) -> AnswerChange:
    """Return a change of a document; it says whether it applied."""

    def changed(case: Case, near: Neighbours) -> Any:
        evaluator = next(each for each in near.evaluators.values() if isinstance(each, NarrativeEvaluator))
        prediction = own_or_answer(case.prediction, evaluator.reads.own_keys)
        data = parse_document(prediction)
        if data is None or not case.expected:
            return None
        annotation = _Annotation(data, evaluator.aligned(case))
        if not change(annotation, near):
            return None
        return json.dumps(annotation.data, ensure_ascii=False) if isinstance(prediction, str) else annotation.data

    return changed


def _character_renamed(annotation: _Annotation, near: Neighbours) -> bool:
    pairs = annotation.stories.characters
    if not pairs:
        return False
    name = near.rng.choice(pairs)[1].name
    for each in annotation.data["characters"]:
        if isinstance(each, dict) and str(each.get("name", "")).strip() == name:
            each.update(name=_NOBODY, alias="")
    return True


def _event_dropped(annotation: _Annotation, near: Neighbours) -> bool:
    if not annotation.events:
        return False
    _, _, raw = near.rng.choice(annotation.events)
    annotation.data["narrative_events"] = [each for each in annotation.data["narrative_events"] if each is not raw]
    return True


def _event_added(annotation: _Annotation, near: Neighbours) -> bool:
    """Add an event that shares nothing with a right one."""
    del near
    if not annotation.events:
        return False
    length = len(annotation.stories.text)
    span = {"start": length + 10, "end": length + 20}
    annotation.data["narrative_events"].append({"id": "no such event", "time_order": 10**6, "text_span": span})
    return True


def _roles_swapped(annotation: _Annotation, near: Neighbours) -> bool:
    """Swap agent and target of a right relationship, if the reverse is not also right."""
    candidates = []
    for right, _, raw in annotation.events:
        ends = {(name_key(each.agent), name_key(each.target)) for each in right.relationships}
        for each in _relationships(raw):
            own = name_key(str(each.get("agent", ""))), name_key(str(each.get("target", "")))
            if own in ends and own[::-1] not in ends:
                candidates.append(each)
    if not candidates:
        return False
    chosen = near.rng.choice(candidates)
    chosen["agent"], chosen["target"] = chosen["target"], chosen["agent"]
    return True


def _relationships(event: _Document) -> list[_Document]:
    values = event.get("relationships")
    return [each for each in values if isinstance(each, dict)] if isinstance(values, list) else []


def _sentiment(annotation: _Annotation, near: Neighbours) -> bool:
    """Give a right relationship the sentiment of another one, which it has nowhere in its event."""
    every = {
        each
        for event in annotation.gold.events
        for relationship in event.relationships
        for each in relationship.sentiments
    }
    candidates = []
    for right, _, raw in annotation.events:
        here = {each for relationship in right.relationships for each in relationship.sentiments}
        ends = {(name_key(each.agent), name_key(each.target)) for each in right.relationships if each.sentiments}
        for each in _relationships(raw):
            own = name_key(str(each.get("agent", ""))), name_key(str(each.get("target", "")))
            sentiment = each.get("sentiment")
            free = sorted(every - here)
            if own in ends and free and isinstance(sentiment, str) and sentiment.strip() in here:
                candidates.append((each, free))
    if not candidates:
        return False
    chosen, free = near.rng.choice(candidates)
    chosen["sentiment"] = near.rng.choice(free)
    return True


def _action(annotation: _Annotation, near: Neighbours) -> bool:
    """Give a right action the type of another event."""
    types = {each.action["type"] for each in annotation.gold.events if "type" in each.action}
    candidates = []
    for right, event, raw in annotation.events:
        own = right.action.get("type")
        if own is not None and event.action.get("type") == own and (free := sorted(types - {own})):
            candidates.append((raw, free))
    if not candidates:
        return False
    raw, free = near.rng.choice(candidates)
    raw["action_layer"]["type"] = near.rng.choice(free)
    return True


def _label(annotation: _Annotation, near: Neighbours) -> bool:
    """Name a label that no taxonomy has, in the place of a right one."""
    candidates = [
        raw
        for right, event, raw in annotation.events
        if "category" in right.action and event.action.get("category") == right.action["category"]
    ]
    if not candidates:
        return False
    near.rng.choice(candidates)["action_layer"]["category"] = _NO_LABEL
    return True


def _span(annotation: _Annotation, near: Neighbours) -> bool:
    """Move the span of a right event to where no right event is."""
    spans = [each.span for each in annotation.gold.events if each.span is not None]
    candidates = [raw for right, event, raw in annotation.events if right.span is not None and event.span is not None]
    if not candidates:
        return False
    start = max(end for _, end in spans) + 10
    near.rng.choice(candidates)["text_span"] = {"start": start, "end": start + 10}
    return True


def _mutator(name: str, why: str, advice: str, change: Any, *components: str) -> Mutator:
    names = ("narrative", *(f"narrative.{each}" for each in components))
    return Mutator(name, why, _of_document(change), advice, names)


def _other_story(case: Case, near: Neighbours) -> Any:
    """Annotate another story, which has none of the characters that are right."""
    right = _names(case.expected)
    return next((other.prediction for other in near.others if right and not right & _names(other.prediction)), None)


def _names(document: Any) -> set[str]:
    data = parse_document(document) or {}
    listed = data.get("characters")
    named = [each for each in listed if isinstance(each, Mapping)] if isinstance(listed, list) else []
    return {name_key(str(each.get("name", ""))) for each in named}


_COMPONENTS: Final = ("characters", "relationships", "sentiment", "action_layer", "text_span")

MUTATORS: Final = (
    Mutator(
        "other_story",
        "it annotates another story",
        _other_story,
        "a gate on overall_score",
        ("narrative", *(f"narrative.{each}" for each in _COMPONENTS)),
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
