"""Constructs of other tools and answers at the edges, for which the tools' own verdicts are kept in `rows`."""

import json
import unicodedata
from collections.abc import Iterator
from itertools import product
from random import Random
from typing import Any

EDGES: list[Any] = [
    *("", " ", "\n\t ", "foo", "Foo", " foo ", "foo bar", "null", "5", "5.0", "true", "é", "e\u0301", "日本語", "😀"),
    *("straße ﬀ", "K\u0130\u017f", "a\u2028b\x85c\ufeffd\x1ce", '{"a": 1}', '{"a": 1.0, "b": [true]}', "[1, 2]"),
    *('x {"b": 2} y', "```json\n[1]\n```", "{a: 1}", '{"a": 1, "a": 2}', "NaN", "-0", "1e400", '"\\ud800"', "\ufeff1"),
    *("one  two\u00a0three", "foo " * 600, None, 0, 5, -1.5, True, False, {}, {"a": 1}, {"foo": "foo"}, [], ["foo", 5]),
]
"""Empty, blank, plain, Unicode, JSON in texts, long, null, numbers, booleans, objects and lists."""

TEXTS = [
    "foo",
    "Foo Bar",
    " foo",
    "5",
    "0",
    "true",
    "null",
    "é",
    "e\u0301",
    "ss",
    "k",
    "日本",
    "😀",
    "a,b",
    '"',
    "\n",
    "{",
]
SCALARS: list[Any] = [5, 0, -1.5, 1e21, 1e-7, True, False, "", None, [], {}, *TEXTS]
LISTS: list[Any] = [
    ["foo"],
    ["foo", "bar"],
    ["foo", 5, True],
    ["É", "ß"],
    [""],
    [],
    [None, "foo"],
    "foo, bar",
    'foo,"a, b"',
    " , foo,,",
    "5",
    '"say \\"hi\\"", foo',
]
VALUES: list[Any] = [{"a": 1}, {"a": 1.0, "b": [True]}, [1, 2], [], {}, {"a": None}, [0], {"é": "e\u0301"}, ["foo", 5]]
PATTERNS = [
    *(
        "",
        "foo",
        "^foo$",
        "^$",
        r"\bfoo\b",
        r"\d+",
        "[^a]",
        ".",
        "(?i)foo",
        "foo|5",
        r"\p{L}",
        "a{,3}",
        "(",
        r"[\s\S]{3,}",
    ),
    *(
        "é",
        "日本",
        "😀",
        r"^\S+$",
        r"\w",
        "null",
        "(?=f)foo",
        r"(o)\1",
        "^[A-Z]",
        r"\u{66}",
        "[]",
        r"^\{",
        r"[\s\S]{3,}",
    ),
]
SCHEMAS: list[Any] = [
    None,
    {},
    True,
    False,
    {"type": "object"},
    {"type": "array", "items": {"type": "integer"}},
    {"required": ["a"]},
    {"properties": {"a": {"const": 1}}, "additionalProperties": False},
    {"enum": [5, "foo", None, {"a": 1}]},
    {"type": ["number", "null"]},
    {"type": "string", "format": "date"},
    {"type": "string", "minLength": 2},
    {"properties": {"a": {"pattern": "^1$"}}},
    {"minProperties": 1, "maxItems": 1},
    "required: [b]",
]


def kind_of(construct: Any) -> str:
    """Return the name of a construct."""
    return str(construct["type"] if "type" in construct else next(iter(construct)))


def answers_of(tool: str, edges: list[Any], construct: Any, own: list[Any]) -> list[Any]:
    """Return the answers that a construct is tried on: times for limits of time, texts where a tool has only these."""
    if kind_of(construct) in ("latency", "not-latency", "MaxDuration"):
        return own
    value = next(iter(construct.values()))
    if isinstance(value, dict) and "expected" in value:  # calls of tools
        return own
    texts_only = tool in ("deepeval", "inspect-ai", "openai-evals", "ragas")
    return [*(each for each in edges if isinstance(each, str) or not texts_only), *own]


def near(value: Any) -> Iterator[Any]:
    """Yield answers that are, contain or just miss a value."""
    if isinstance(value, list):
        texts = [each for each in value if isinstance(each, str)]
        yield from (json.dumps(value), " ".join(texts), "".join(reversed(texts)), value, *texts[:1])
    elif isinstance(value, dict):
        yield from (json.dumps(value), f"x {json.dumps(value)} y", value, json.dumps({**value, "z": 1}))
    elif isinstance(value, str):
        yield from (value, f"{value}x", f"x{value}", f" {value}\n", value.upper(), value.lower(), value * 2)
        yield from (unicodedata.normalize("NFD", value), [value], {"a": value}, value[:-1])
    elif value is not None:
        yield from (value, json.dumps(value), f"{value}", f"{value}0", str(value).lower(), [value])


def assertions() -> Iterator[dict[str, Any]]:
    """Yield assertions of promptfoo, each type at the edges of its values."""
    for kind, value in product(("contains", "icontains", "starts-with", "ends-with"), SCALARS):
        yield {"type": kind, "value": value}
    for kind, value in product(("contains-all", "contains-any", "icontains-all", "icontains-any"), LISTS):
        yield {"type": kind, "value": value}
    yield from ({"type": "equals", "value": value} for value in [*SCALARS, *VALUES])
    yield from ({"type": "regex", "value": value} for value in PATTERNS)
    for kind, value in product(("is-json", "contains-json"), SCHEMAS):
        yield {"type": kind, **({} if value is None else {"value": value})}
    for value, limit in product(("foo", "", "日本語", "😀", 5), (None, 0, 0.5, 1, 3.9, 100, -1)):
        yield {"type": "levenshtein", "value": value, **({} if limit is None else {"threshold": limit})}
    for value in (
        0,
        1,
        2,
        3,
        2.5,
        "2",
        "x",
        -1,
        {"min": 1},
        {"max": 2},
        {"min": 0, "max": 0},
        {"min": 2, "max": 1},
        {},
    ):
        yield {"type": "word-count", "value": value}
    yield from ({"type": "latency", "threshold": each} for each in (0, 1, 100, 100.5, 3600000))
    yield {"type": "is-refusal"}
    inside = [{"type": "contains", "value": "foo"}, {"type": "equals", "value": "5"}, {"type": "is-json"}]
    for least in (None, 0, 0.3, 0.5, 0.67, 1, 2):
        yield {"type": "assert-set", "assert": inside, **({} if least is None else {"threshold": least})}
    negated = [{"type": f"not-{each['type']}", **{key: each[key] for key in each if key != "type"}} for each in inside]
    yield {"type": "assert-set", "assert": negated}


def promptfoo(number: int) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """Yield assertions with answers of their own: all of them plain and negated, then random ones."""
    plain = list(assertions())
    negated = [{**each, "type": f"not-{each['type']}"} for each in plain if each["type"] != "assert-set"]
    source = Random(47)
    listed = [*plain, *negated]
    for count in range(number):
        assertion = dict(listed[count] if count < len(listed) else _varied(source.choice(listed), source))
        times = assertion["type"].endswith("latency")
        yield assertion, [0, 1, 99.99, 100, 100.25, 3.6e6] if times else list(near(assertion.get("value")))


def _varied(assertion: dict[str, Any], source: Random) -> dict[str, Any]:
    """Return an assertion with another value of the same type of value."""
    pools: list[list[Any]] = [TEXTS, SCALARS, LISTS, PATTERNS]
    value = assertion.get("value")
    if isinstance(value, list):
        texts = source.choices(SCALARS, k=source.randint(1, 4))
        return {**assertion, "value": texts}
    if not isinstance(value, str) or not any(value in pool for pool in pools):
        return assertion
    if assertion["type"].endswith("regex"):
        return {**assertion, "value": "".join(source.choices([*PATTERNS, "x", "?", "*", "+", "|", "{2}", "é"], k=3))}
    if assertion["type"].endswith(("-all", "-any")):
        return {**assertion, "value": source.choice([",", ", ", " ,"]).join(source.choices(TEXTS, k=3))}
    return {**assertion, "value": source.choice(["", " "]).join(source.choices(TEXTS, k=2))}


CELLS = [
    *("foo", " foo ", "equals: foo", "not-contains: foo", "contains-any: foo, bar", 'contains-all:"foo","a, b"'),
    *(
        "levenshtein(2): foo",
        "levenshtein: foo",
        "is-json",
        "regex: ^f",
        "starts-with: foo",
        "{{v}}",
        "contains:{{ v }}",
    ),
    *("icontains: FOO", "word-count: 2", "not-equals:", "ends-with: o", "contains-json", "", "is-json:{}"),
]
"""Cells of the column of assertions in a table."""
_VARIABLES: list[Any] = ["foo", "Bar", "é", "5", 5, True, "{{w}}", "a, b", "", '"q"']
_ANSWERS = ["foo", "Foo Bar", "foo bar", "5", '{"a": 1}', "bar", "a, b", "xé", "[1]", "true"]


def configurations(number: int) -> Iterator[tuple[dict[str, Any], dict[str, str]]]:
    """Yield configurations of promptfoo with recorded answers, and their tables: name to text."""
    source = Random(4747)
    pool = [
        each for each in assertions() if each["type"] not in ("latency", "ends-with") and "-json" not in each["type"]
    ]
    for _ in range(number):
        config: dict[str, Any] = {"prompts": ["{{v}}"], "providers": ["echo"]}
        tests = [_test(source, pool) for _ in range(source.randint(1, 3))]
        files = {}
        if source.random() < 0.4:
            rows = [_row(source) for _ in range(source.randint(1, 4))]
            columns = ["v", "__expected1", "__expected2", "__providerOutput", "__threshold", "__metric"]
            columns = [each for each in columns if any(row.get(each) for row in rows) or each == "v"]
            files["tests.csv"] = _table(columns, rows)
            config["tests"] = [*tests, "file://tests.csv"] if source.random() < 0.5 else "file://tests.csv"
        else:
            config["tests"] = tests
        if source.random() < 0.4:
            config["defaultTest"] = {"assert": [_assertion(source, pool)], "vars": {"w": "foo"}}
            if source.random() < 0.3:
                config["defaultTest"]["threshold"] = source.choice([0, 0.5, 1])
        if isinstance(config["tests"], list) and source.random() < 0.2:
            sets = [{"vars": {"v": each}} for each in source.sample(_VARIABLES[:5], 2)]
            config["scenarios"] = [{"config": sets, "tests": [_test(source, pool)]}]
        yield config, files


def _test(source: Random, pool: list[dict[str, Any]]) -> dict[str, Any]:
    test: dict[str, Any] = {"vars": {"v": source.choice(_VARIABLES)}, "providerOutput": source.choice(_ANSWERS)}
    if test["vars"]["v"] == "{{w}}":
        test["vars"]["w"] = source.choice(["foo", "Bar", 5])
    if source.random() < 0.2:
        test["vars"]["v"] = source.sample(["foo", "Bar", "é"], 2)
    test["assert"] = [_assertion(source, pool) for _ in range(source.randint(1, 3))]
    if source.random() < 0.3:
        inside = [_assertion(source, pool) for _ in range(source.randint(1, 3))]
        least = {} if source.random() < 0.5 else {"threshold": source.choice([0, 0.5, 0.67, 1])}
        test["assert"].append({"type": "assert-set", "assert": inside, **least, **_weight(source)})
    if source.random() < 0.4:
        test["threshold"] = source.choice([0, 0.3, 0.5, 0.67, 0.9, 1, 1.5])
    if source.random() < 0.1:
        test["options"] = {"disableDefaultAsserts": True}
    return test


def _assertion(source: Random, pool: list[dict[str, Any]]) -> dict[str, Any]:
    """Return an assertion that often has a template, and is about what answers often have."""
    kind = source.choice(["contains", "equals", "icontains", "starts-with", "regex", "contains-any", "is-json", ""])
    if not kind:
        chosen = dict(source.choice(pool))
        return chosen if chosen["type"] == "assert-set" else {**chosen, **_weight(source)}
    value = source.choice(["foo", "{{v}}", "x{{ v }}", "{{ w }}", "{{absent}}", "Foo", "a, b", "5"])
    negated = "not-" if source.random() < 0.3 else ""
    value_of = {} if kind == "is-json" else {"value": [value, "bar"] if kind == "contains-any" else value}
    return {"type": f"{negated}{kind}", **value_of, **_weight(source)}


def _weight(source: Random) -> dict[str, Any]:
    return {} if source.random() < 0.7 else {"weight": source.choice([0, 0.5, 1, 2, 3])}


def _row(source: Random) -> dict[str, str]:
    row = {"v": str(source.choice(["foo", "Bar", "é", "a, b", " x "])), "__expected1": source.choice(CELLS)}
    row["__providerOutput"] = source.choice(_ANSWERS)
    if source.random() < 0.4:
        row["__expected2"] = source.choice(CELLS)
    if source.random() < 0.3:
        row["__threshold"] = source.choice(["0", "0.5", " 1 ", "half"])
    if source.random() < 0.2:
        row["__metric"] = "tone"
    return row


def _table(columns: list[str], rows: list[dict[str, str]]) -> str:
    def cell(text: str) -> str:
        return '"' + text.replace('"', '""') + '"' if set(text) & set(',"\n') or text != text.strip() else text

    lines = [columns, *([row.get(each, "") for each in columns] for row in rows)]
    return "".join(",".join(map(cell, line)) + "\n" for line in lines)


def more_texts(number: int) -> list[str]:
    """Return texts of two or three others, each once."""
    source = Random(470)
    drawn = (source.choice(["", " "]).join(source.choices(TEXTS, k=source.randint(2, 3))) for _ in range(number))
    return list(dict.fromkeys(each for each in drawn if each.strip() == each))


def evaluators() -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """Yield evaluators of pydantic-evals with answers of their own."""
    for value in [each for each in [*SCALARS, *VALUES, *more_texts(320)] if each is not None and each != ""]:
        own = list(near(value))
        yield {"Equals": {"value": value}}, own
        yield {"EqualsExpected": {"expected_output": value}}, own
        yield {"Contains": {"value": value}}, own
        if isinstance(value, str):
            yield {"Contains": {"value": value, "case_sensitive": False}}, own
            yield {"Contains": {"value": value, "as_strings": True}}, own
    yield from (({"MaxDuration": {"seconds": each}}, [0, 1, 99, 100, 101, 2000]) for each in (0, 0.1, 2))


def graders() -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """Yield string checks of OpenAI's evals, each with its right answer, with answers of their own."""
    texts = [each for each in [*TEXTS, *more_texts(300)] if each.strip() == each]
    for name, text in product(("eq", "ne", "like", "ilike"), texts):
        yield {name: text}, [each for each in near(text) if isinstance(each, str)]


def scorers() -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """Yield scorers of inspect_ai, each with its target, with answers of their own."""
    texts = [each for each in [*TEXTS, *more_texts(1100)] if each.strip()]
    for name, text in product(("includes", "match"), texts):
        yield {name: text}, [each for each in near(text) if isinstance(each, str)]


UNTRIED: dict[str, list[Any]] = {
    "promptfoo": [
        *(
            {"type": kind, "value": "foo"}
            for kind in ("answer-relevance", "bleu", "factuality", "g-eval", "llm-rubric")
        ),
        *({"type": kind, "value": "foo"} for kind in ("meteor", "model-graded-closedqa", "model-graded-factuality")),
        *({"type": kind, "value": "foo"} for kind in ("rouge-n", "similar", "similar:cosine", "similar:dot")),
        {"type": "similar:euclidean", "value": "foo"},
        {"type": "cost", "threshold": 0.1},
    ],
    "pydantic-evals": [
        {"LLMJudge": {"rubric": "foo"}},
        {"GEval": {"criteria": "foo", "evaluation_steps": ["foo"]}},
    ],
}
"""Constructs whose verdict depends on a model, a price or another's arithmetic: without rows, so never the same."""
