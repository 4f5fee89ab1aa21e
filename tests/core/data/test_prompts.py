import json
from pathlib import Path

import pytest

from evr1_core.api import ConfigError, Media, Sample
from evr1_core.data.prompts import PromptTemplates, labelled
from evr1_core.testing import SAMPLES

VIDEO, IMAGE = Media(kind="video", path="/a.mp4"), Media(kind="image", path="/a.png")
THINK = "Reason between <think> and </think>, then give {} between <answer> and </answer>."
DIRECT = "Give {} between <answer> and </answer>."


def sample(problem="What?", task="other", options=(), media=(), **extra):
    return Sample(uid="u", task=task, problem=problem, answer="x", options=tuple(options), media=tuple(media), extra=extra)


@pytest.fixture
def templates(tmp_path):
    """Templates with files of one's own, given as name=text."""

    def make(style="think", **files):
        for name, text in files.items():
            (tmp_path / f"{name}.jinja").write_text(text)
        return PromptTemplates(str(tmp_path), style)

    return make


def test_plain_text():
    assert PromptTemplates("", "think").prompt(sample()).parts == ("What?\n" + THINK.format("the answer"),)
    assert PromptTemplates("", "direct").prompt(sample()).parts == ("What?\n" + DIRECT.format("the answer"),)


def test_options_follow_the_question():
    text = PromptTemplates("", "direct").prompt(sample(task="multiple choice", options=["red", "blue"])).parts
    assert text == ("What?\nA. red\nB. blue\n" + DIRECT.format("the letter"),)


@pytest.mark.parametrize(
    ("task", "what"),
    [
        ("temporal grounding", '{"time": [start, end]} in seconds'),
        ("counting", "the number"),
        ("regression", "the number"),
        ("yes/no", "yes or no"),
        ("svg code", "the code"),
        ("preference", "1, 2 or tie"),
        ("caption", "the answer"),
        ("juggling", "the answer"),
    ],
)
def test_what_each_type_is_asked_for(task, what):
    assert PromptTemplates("", "think").prompt(sample(task=task)).parts[0].endswith(THINK.format(what))


@pytest.mark.parametrize("style", ["think", "direct"])
@pytest.mark.parametrize("task", SAMPLES)
def test_every_type_asks_for_an_answer_block(task, style):
    (text,) = PromptTemplates("", style).prompt(SAMPLES[task]).parts
    assert text.startswith(SAMPLES[task].problem)
    assert ("<think>" in text, "<answer>" in text) == (style == "think", True)


def test_media_stand_where_the_text_says():
    prompt = PromptTemplates("", "direct").prompt(sample("<video>Is <image> in it, or <image>?", media=(VIDEO, IMAGE, IMAGE)))
    assert prompt.parts == (VIDEO, "Is ", IMAGE, " in it, or ", IMAGE, "?\n" + DIRECT.format("the answer"))
    assert prompt.media == (VIDEO, IMAGE, IMAGE)


def test_media_side_by_side():
    prompt = PromptTemplates("", "direct").prompt(sample("<image><video>What?", media=(IMAGE, VIDEO)))
    assert prompt.parts[:2] == (IMAGE, VIDEO)
    assert all(prompt.parts)


def test_placeholders_in_other_texts_make_no_media(templates):
    own = templates(other="{{ problem }}|{{ options[0] }}|{{ extra.note }}|{{ task }}")
    made = own.prompt(sample("<image>?", options=["<video>"], media=(IMAGE,), note="<image>\x00image\x00\x000\x00"))
    assert made.parts == (IMAGE, "?|A. <video>|<image>\x00image\x00\x000\x00|other")


@pytest.mark.parametrize(
    ("options", "shown"),
    [
        (["red", "blue"], ["A. red", "B. blue"]),
        (["A. red", "B. blue"], ["A. red", "B. blue"]),
        (["(A) red", "(B) blue"], ["(A) red", "(B) blue"]),
        (["C: red", "D: blue"], ["C: red", "D: blue"]),
        ([" A) red ", "B) blue"], ["A) red", "B) blue"]),
        (["3", "4.5"], ["A. 3", "B. 4.5"]),
        (["Jim", "A. Smith"], ["A. Jim", "B. A. Smith"]),
        ([], []),
    ],
)
def test_labels_of_options(options, shown):
    assert labelled(options) == shown


def test_a_file_replaces_the_built_in_one_and_leaves_the_others(templates):
    own = templates(temporal_grounding="{{ problem }} ({{ style }}, {{ extra.hint }})", juggling="{{ task }}: {{ problem }}")
    assert own.prompt(sample(task="temporal grounding", hint="soon")).parts == ("What? (think, soon)",)
    assert own.prompt(sample(task="juggling")).parts == ("juggling: What?",)
    assert own.prompt(sample(task="ocr")).parts[0].endswith(THINK.format("the text that can be read"))


def test_a_file_for_one_of_several_names(templates):
    own = templates(counting="count: {{ problem }}", default="any: {{ problem }}")
    assert own.prompt(sample(task="counting")).parts == ("count: What?",)
    assert own.prompt(sample(task="number")).parts[0].endswith(THINK.format("the number"))
    assert own.prompt(sample(task="caption")).parts == ("any: What?",)


def test_a_file_may_build_on_the_built_in_form(templates):
    own = templates("direct", ocr='{% extends "_base.jinja" %}{% block what %}every word{% endblock %}')
    assert own.prompt(sample(task="ocr")).parts == ("What?\n" + DIRECT.format("every word"),)


WRONG = {
    "{{ problem": r"ocr\.jinja:1: unexpected end of template",
    "{{ problem }}\n{% if %}": r"ocr\.jinja:2: Expected an expression",
    '{% extends "_nothing.jinja" %}': r"ocr\.jinja.*_nothing\.jinja.*\(record 'u'\)",
    "{{ problem }}\n{{ answer }}": r"ocr\.jinja:2: 'answer' is undefined \(record 'u'\)",
    "{{ problem }}\n\n{{ 1 / 0 }}": r"ocr\.jinja:3: division by zero \(record 'u'\)",
    "{{ problem }}{{ options[3].x }}": r"ocr\.jinja:1: .*\(record 'u'\)",
    "{{ problem }}{{ problem + 1 }}": r"ocr\.jinja:1: .*\(record 'u'\)",
    "": r"ocr\.jinja: renders nothing for record 'u'",
    "no question": r"ocr\.jinja: must show the 1 media of record 'u' once each; shows 0",
    "{{ problem }}{{ problem }}": r"ocr\.jinja: must show the 1 media of record 'u' once each; shows 2",
    "{{ problem[:3] }}": r"ocr\.jinja: must show the 1 media of record 'u' once each; shows 0",
    "{{ ''.__class__.__mro__ }}{{ problem }}": r"ocr\.jinja:1: access to attribute '__class__' of 'str' object is unsafe",
    "{{ extra.update(a=1) }}{{ problem }}": r"ocr\.jinja:1: .*not safely callable|unsafe",
    "{% for i in range(10 ** 9) %}{% endfor %}": r"ocr\.jinja:1: Range too big",
}


@pytest.mark.parametrize("text", WRONG)
def test_wrong_templates_name_file_line_and_record(templates, text):
    with pytest.raises(ConfigError, match=WRONG[text]):
        templates(ocr=text).prompt(sample("<video>?", task="ocr", media=(VIDEO,)))


def test_all_templates_are_compiled_at_the_start(templates):
    with pytest.raises(ConfigError) as caught:
        templates(ocr="{{", juggling="{% if %}")
    assert [Path(problem.partition(":")[0]).name for problem in caught.value.problems] == ["juggling.jinja", "ocr.jinja"]


def test_file_names_that_no_type_would_use(tmp_path):
    for name in ("Temporal-Grounding", "mcq", "yes_no", "_mine", "default", "my_type"):
        (tmp_path / f"{name}.jinja").write_text("{{ problem }}")
    with pytest.raises(ConfigError) as caught:
        PromptTemplates(str(tmp_path), "think")
    used = "no problem type uses this name;"
    assert list(caught.value.problems) == [
        f"{tmp_path}/Temporal-Grounding.jinja: {used} temporal_grounding.jinja would serve `temporal grounding`",
        f"{tmp_path}/mcq.jinja: {used} multiple_choice.jinja would serve `multiple choice`",
    ]


def test_folders_that_cannot_be_used(tmp_path):
    with pytest.raises(ConfigError, match=r"data\.templates: there is no folder"):
        PromptTemplates(str(tmp_path / "no"), "think")
    (tmp_path / "ocr.jinja").write_bytes(b"\xff")
    with pytest.raises(ConfigError, match=r"ocr\.jinja: .*utf-8"):
        PromptTemplates(str(tmp_path), "think")


def test_templates_do_not_reach_other_files(templates):
    with pytest.raises(ConfigError, match=r"ocr\.jinja"):
        templates(ocr='{% include "../../../../etc/hostname" %}{{ problem }}').prompt(sample(task="ocr"))


def test_a_task_cannot_choose_a_file_outside(templates):
    own = templates(default="fallback: {{ problem }}")
    for task in ("../../secret", "_base", "", ".", "\x00"):
        assert own.prompt(sample(task=task)).parts == ("fallback: What?",)


def test_json_in_grounding_prompts_is_valid():
    for task in ("tracking", "spatial temporal grounding", "spatial grounding", "temporal grounding"):
        (text,) = PromptTemplates("", "direct").prompt(sample(task=task)).parts
        form = text[text.index("{") : text.rindex("}") + 1]
        for word in ("start", "end", "x1", "y1", "x2", "y2"):
            form = form.replace(word, "1")
        assert set(json.loads(form)) <= {"time", "boxes"}
