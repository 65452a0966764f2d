"""Label sets of narrative annotation in files of users."""

from pathlib import Path

import pytest
from project import CONFORMANCE

from pytest_llmeval.core import SuiteError
from pytest_llmeval.tasks.narrative.labels import narrative_taxonomy

STORIES = CONFORMANCE / "narrative" / "stories.jsonl"


def written(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return str(path)


def faults(folder: Path, option: str, name: str, text: str) -> list[str]:
    """Return place, path and message of each fault that a file has."""
    with pytest.raises(SuiteError) as caught:
        narrative_taxonomy(**{option: written(folder, name, text)})
    assert {Path(each.file).name for each in caught.value.faults} == {name}
    return [f"{each.line}:{each.column} {each.path}: {each.message}" for each in caught.value.faults]


def test_polarity_of_a_label_of_a_users_file_holds_in_any_letter_case(tmp_path: Path) -> None:
    taxonomy = narrative_taxonomy(sentiments=written(tmp_path, "s.csv", "label,polarity\nCalm,neutral\n"))
    assert taxonomy.polarity("calm") == taxonomy.polarity("Calm") == "neutral"


def test_a_file_is_read_once(tmp_path: Path) -> None:
    path = written(tmp_path, "s.csv", "label,polarity\ncalm,neutral\n")
    first = narrative_taxonomy(sentiments=path)
    assert narrative_taxonomy(sentiments=path) is first
    assert first.relationships.names.keys() == narrative_taxonomy().relationships.names.keys()


RELATIONSHIPS = {
    "r.csv": "level1,level2,level1_zh,level2_zh\nCrew,captain,船员,船长\nCrew,cook,船员,厨子\nShore,innkeeper,,\n",
    "carried.csv": (
        "Level 1,Level 2 Tag,Definition,level1_zh,level2_zh\n"
        "Crew,captain,x,船员,船长\n,cook,y,,厨子\nShore,innkeeper,,,\n"
    ),
    "r.yaml": (
        "relationships:\n"
        "  - label: Crew\n    zh: 船员\n    level2: [{label: captain, zh: 船长}, {label: cook, aliases: [厨子]}]\n"
        "  - {label: Shore, level2: [{label: innkeeper}]}\n"
    ),
    "r.json": (
        '{"relationships": [{"label": "Crew", "zh": "船员", "level2": [{"label": "captain", "zh": "船长"},'
        ' {"label": "cook", "zh": "厨子"}]}, {"label": "Shore", "level2": [{"label": "innkeeper"}]}]}'
    ),
    "r.md": (
        "# Who is who\n\n| Level 1 | Level 2 | level2_zh | level1_zh |\n|:---|---|:-:|--|\n"
        "| **Crew** | `captain` | 船长 | 船员 |\n| | `cook` | 厨子 | |\n| Shore | `innkeeper` | | |\n\nThe end.\n"
    ),
    "headed.md": (
        "## I. Crew (船员)\n\nlevel2 | zh\n--- | ---\n`captain` | 船长\n`cook` | 厨子\n\n"
        "## 2. Shore\n\n| level2 | zh |\n| --- | --- |\n| innkeeper | |\n"
    ),
}


@pytest.mark.parametrize("name", RELATIONSHIPS)
def test_relationships_are_the_same_from_every_form_of_file(tmp_path: Path, name: str) -> None:
    taxonomy = narrative_taxonomy(relationships=written(tmp_path, name, RELATIONSHIPS[name]))
    levels = taxonomy.relationships
    assert levels.names == {"Crew": "Crew", "Shore": "Shore", "船员": "Crew"}
    assert levels.members["Crew"].names == {"captain": "captain", "cook": "cook", "船长": "captain", "厨子": "cook"}
    assert levels.members["Shore"].names == {"innkeeper": "innkeeper"}


SENTIMENTS = {
    "s.csv": (
        "label,polarity,level,zh,aliases\ncalm,neutral,0,平静,\nfond,positive,2,,warm; tender\nbitter,negative,,,\n"
    ),
    "words.csv": (
        "标签 (Tag),中文名称,情感极性,典型心理与行为, Friendly Level,alias\n"
        'calm,平静,Neutral,x, 0,\nfond,,High Positive,x,2,"warm，tender"\nbitter,,Negative (Passive),,,\n'
    ),
    "zh.csv": "标签,中文,极性,别名\ncalm,平静,中性,\nfond,,正面,warm、tender\nbitter,,消极,\n",
    "s.yaml": (
        "sentiments:\n- {label: calm, polarity: neutral, zh: 平静}\n"
        "- {label: fond, polarity: positive, level: 2, aliases: [warm, tender]}\n"
        "- {label: bitter, polarity: negative}\n"
    ),
    "s.md": (
        "| Tag | Polarity | zh | Aliases |\n|---|---|---|---|\n| `calm` | neutral | 平静 | |\n"
        "| `fond` | positive | | warm, tender |\n| `bitter` | negative | | |\n"
    ),
}


@pytest.mark.parametrize("name", SENTIMENTS)
def test_sentiments_are_the_same_from_every_form_of_file(tmp_path: Path, name: str) -> None:
    taxonomy = narrative_taxonomy(sentiments=written(tmp_path, name, SENTIMENTS[name]))
    own = {"calm": "calm", "fond": "fond", "bitter": "bitter"}
    assert taxonomy.sentiments.names == {**own, "平静": "calm", "warm": "fond", "tender": "fond"}
    assert taxonomy.polarities == {"calm": "neutral", "fond": "positive", "bitter": "negative"}


ACTIONS = {
    "a.csv": (
        "category,category_zh,short,type,zh,contexts,status,function\n"
        "Sea & Sky,海天,sea,sail,航行,storm; calm,done,start\n,,,moor,停泊,,undone,end\nTrade,,,haggle,,market,,\n"
    ),
    "a.yaml": (
        "categories:\n"
        "  - label: Sea & Sky\n    zh: 海天\n    short: sea\n"
        "    types: [{label: sail, zh: 航行, contexts: [storm, calm]}, {label: moor, zh: 停泊}]\n"
        "  - {label: Trade, types: [{label: haggle, contexts: [market]}]}\n"
        "statuses: [{label: done}, {label: undone}]\nfunctions: [{label: start}, {label: end}]\n"
    ),
    "a.md": (
        "# Actions\n\n## 1. Kinds\n\n### I. Sea & Sky (海天)\n*On the water.*\n\n"
        "| Code | Name (名称) | Definition | Short | Recommended Context Tags |\n| :--- | :--- | :--- | :--- | :--- |\n"
        "| **`sail`** | **航行** | Go. | sea | `storm`, `calm` |\n| **`moor`** | **停泊** | Stay. | | |\n\n"
        "### II. Trade\n\n| Code | Context Tags (语境) |\n| :--- | :--- |\n| **`haggle`** | `market` |\n\n---\n\n"
        "## 2. Status & Logic\n\n"
        "| Tag | Definition |\n| :--- | :--- |\n| **`done`** | Yes. |\n| **`undone`**| No. |\n\n"
        "## 3. Narrative Function\n\n* **`start`**: Begins.\n- `end`: Ends.\n* no label\n"
    ),
}


@pytest.mark.parametrize("name", ACTIONS)
def test_actions_are_the_same_from_every_form_of_file(tmp_path: Path, name: str) -> None:
    taxonomy = narrative_taxonomy(actions=written(tmp_path, name, ACTIONS[name]))
    assert taxonomy.categories.names == {
        "Sea & Sky": "Sea & Sky",
        "Trade": "Trade",
        "sea": "Sea & Sky",
        "海天": "Sea & Sky",
    }
    assert taxonomy.categories.members["Sea & Sky"].names == {
        "sail": "sail",
        "moor": "moor",
        "航行": "sail",
        "停泊": "moor",
    }
    assert taxonomy.categories.members["Trade"].names == {"haggle": "haggle"}
    assert set(taxonomy.contexts.names) == {"storm", "calm", "market"}
    assert taxonomy.statuses.names == {"done": "done", "undone": "undone"}
    assert taxonomy.functions.names == {"start": "start", "end": "end"}


def test_a_context_may_have_another_name_in_parentheses(tmp_path: Path) -> None:
    text = "### Sea\n\n| Code | Context |\n|---|---|\n| `sail` | `storm` (风暴), `a\\|b` |\n"
    taxonomy = narrative_taxonomy(actions=written(tmp_path, "a.md", text))
    assert set(taxonomy.contexts.names) == {"storm", "风暴", "a|b"}


def test_what_a_file_does_not_list_is_not_checked(tmp_path: Path) -> None:
    taxonomy = narrative_taxonomy(actions=written(tmp_path, "a.csv", "category,type\nSea,sail\nAir,\n"))
    assert taxonomy.invalid_action("status", "anything") is None
    assert taxonomy.invalid_action("context", "anything") is None
    assert taxonomy.invalid_action("type", "anything", "Air") is None
    assert taxonomy.invalid_action("type", "anything", "Sea") == "type 'anything' is unknown"


def test_a_category_of_the_shipped_name_keeps_its_short_name_in_a_users_file(tmp_path: Path) -> None:
    text = "category,type\nPhysical & Conflict,attack\nSea,sail\n"
    taxonomy = narrative_taxonomy(actions=written(tmp_path, "a.csv", text))
    assert taxonomy.invalid_action("type", "attack", "physical") is None
    assert taxonomy.categories.names["physical"] == "Physical & Conflict"
    assert "mental" not in taxonomy.categories.names


@pytest.mark.parametrize(
    ("option", "name", "text", "expected"),
    [
        (
            "relationships",
            "r.csv",
            "level1,levle2\nCrew,cook\n",
            ["0:0 : found the columns 'level1', 'levle2', expected the columns 'level1' and 'level2'"],
        ),
        (
            "relationships",
            "r.csv",
            "level1,level2\n,cook\nCrew,cook\nCrew,cook\nShore,cook\n",
            [
                "2:1 level1: found the level2 'cook' without a level1, expected one in this row or above it",
                "4:1 level2: found the label 'cook' twice, expected it once",
            ],
        ),
        ("relationships", "r.csv", "level1,level2\nCrew\n", ["2:1 : found 1 cells, expected 2 as in the header"]),
        (
            "relationships",
            "r.md",
            "Only prose.\n",
            ["0:0 : found no table, expected the columns 'level1' and 'level2'"],
        ),
        (
            "relationships",
            "r.md",
            "| level1 | level2 |\n|---|---|\n| Crew | cook | fat |\n| Crew | mate |\n",
            ["3:1 : found 3 cells, expected 2 as in the header"],
        ),
        (
            "relationships",
            "r.yaml",
            "relationships:\n- label: Crew\n  levels2: []\n- {label: Crew}\n",
            [("3:3 relationships[0].levels2: unknown key levels2, did you mean level2?")],
        ),
        (
            "relationships",
            "r.yaml",
            "relationships:\n- {label: Crew, level2: [{label: cook}, {label: cook}]}\n- label: Crew\n- {label: ' '}\n",
            [
                "2:49 relationships[0].level2[1].label: found the label 'cook' twice, expected it once",
                "3:10 relationships[1].label: found the label 'Crew' twice, expected it once",
                "4:11 relationships[2].label: found the text ' ', expected a label without surrounding spaces",
            ],
        ),
        (
            "sentiments",
            "s.csv",
            "label,polarity,level\ncalm,even,0\n,positive,1\nfond,positive,high\nfond,both positive and negative,1\n",
            [
                "2:1 polarity: found the text 'even', expected positive, neutral or negative",
                "3:1 label: found the text '', expected a label without surrounding spaces",
                "4:1 level: found the text 'high', expected a number",
                "5:1 label: found the label 'fond' twice, expected it once",
                "5:1 polarity: found the text 'both positive and negative', expected positive, neutral or negative",
            ],
        ),
        (
            "sentiments",
            "s.yaml",
            "sentiments:\n- {label: calm, polarity: neutrl}\n",
            [
                (
                    "2:27 sentiments[0].polarity: found the text 'neutrl' (did you mean 'neutral'?), expected one of "
                    "'positive', 'neutral', 'negative'"
                )
            ],
        ),
        ("actions", "a.yaml", "statuses: []\n", ["1:1 : categories is missing"]),
        (
            "actions",
            "a.csv",
            "category,type,status\nSea,sail,done\nSea,moor,done\n",
            ["3:1 status: found the label 'done' twice, expected it once"],
        ),
        ("actions", "a.csv", "", ["0:0 : found an empty file, expected a line of column names"]),
    ],
)
def test_faults_of_a_file_are_told_with_their_place(
    tmp_path: Path, option: str, name: str, text: str, expected: list[str]
) -> None:
    assert faults(tmp_path, option, name, text) == expected


def test_a_file_that_is_not_there_is_told_with_the_nearest(tmp_path: Path) -> None:
    written(tmp_path, "sentiments.csv", "label,polarity\ncalm,neutral\n")
    with pytest.raises(SuiteError, match=r"sentiment\.csv  cannot be read: .* \(did you mean 'sentiments.csv'\?\)"):
        narrative_taxonomy(sentiments=str(tmp_path / "sentiment.csv"))


BILINGUAL = (
    "一级分类 (Level 1),二级标签 (Level 2 Tag),核心定义与区别 (Definition),典型叙事场景 (Context)\n"
    "船与人(Crew & Ship),captain,指挥, 一切,x\n,cook,y,z\n岸上 (Shore),innkeeper,a,b, c, d\n"
)


def test_a_file_with_bilingual_columns_and_labels_and_unquoted_commas_is_read(tmp_path: Path) -> None:
    levels = narrative_taxonomy(relationships=written(tmp_path, "zh.csv", BILINGUAL)).relationships
    assert set(levels.members) == {"Crew & Ship", "Shore"}
    assert levels.names["船与人"] == levels.names["船与人(Crew & Ship)"] == "Crew & Ship"
    assert set(levels.members["Crew & Ship"].names) == {"captain", "cook"}
    assert set(levels.members["Shore"].names) == {"innkeeper"}


def test_surplus_cells_before_a_wanted_column_are_a_fault(tmp_path: Path) -> None:
    text = "Level 1,Definition,Level 2\nCrew,on board, always,cook\n"
    assert faults(tmp_path, "relationships", "r.csv", text) == ["2:1 : found 4 cells, expected 3 as in the header"]


def test_bilingual_labels_of_sentiments_are_read_in_either_order(tmp_path: Path) -> None:
    text = "label,polarity\nfond(喜爱),positive\n厌恶（bitter）,negative\n"
    sentiments = narrative_taxonomy(sentiments=written(tmp_path, "s.csv", text)).sentiments
    assert sentiments.names["喜爱"] == "fond"
    assert sentiments.names["厌恶"] == sentiments.names["厌恶（bitter）"] == "bitter"


@pytest.mark.parametrize(
    "header",
    [
        "Level 1 (required),Level 2 Tag [see the guide]",
        "一级分类（必填）,二级标签 (Level 2 Tag)（选填）",
        "Level 1 [v2] (top),Level 2 (sub) Tag",
        "【Level 1】level1,level2【下级】",
    ],
)
def test_headers_may_have_remarks_in_brackets(tmp_path: Path, header: str) -> None:
    taxonomy = narrative_taxonomy(relationships=written(tmp_path, "r.csv", f"{header}\nCrew,captain\n"))
    assert taxonomy.relationships.names == {"Crew": "Crew"}
    assert taxonomy.relationships.members["Crew"].names == {"captain": "captain"}
    table = f"| {header.replace(',', ' | ')} |\n|---|---|\n| Crew | captain |\n"
    taxonomy = narrative_taxonomy(relationships=written(tmp_path, "r.md", table))
    assert taxonomy.relationships.names == {"Crew": "Crew"}


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("s.csv", "标签 (Tag),中文名称\nhostile,仇视\nCalm,平静\n敌对,\n"),
        ("s.yaml", "sentiments: [{label: hostile}, {label: Calm}, {label: 敌对}]"),
    ],
)
def test_sentiments_without_polarity_have_that_of_the_shipped_ones(tmp_path: Path, name: str, text: str) -> None:
    taxonomy = narrative_taxonomy(sentiments=written(tmp_path, name, text))
    assert taxonomy.sentiments.names.keys() >= {"hostile", "Calm", "敌对"}
    assert [taxonomy.polarity(label) for label in ("hostile", "Calm", "敌对")] == ["negative", None, "negative"]


def test_a_list_of_sentiments_needs_labels(tmp_path: Path) -> None:
    found = faults(tmp_path, "sentiments", "s.csv", "name of it,polarity\nx,positive\n")
    assert found == ["0:0 : found the columns 'name of it', 'polarity', expected the column 'label'"]
