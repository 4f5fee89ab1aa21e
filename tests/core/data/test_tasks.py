import pytest

from evr1_core.data.tasks import SPELLINGS, TEMPLATES, canonical, template_name
from evr1_core.testing import SAMPLES


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Temporal_Grounding", "temporal grounding"),
        ("spatial-temporal grounding", "spatial temporal grounding"),
        ("spatial_temporal-grounding", "spatial temporal grounding"),
        ("Spatio-Temporal Grounding", "spatial temporal grounding"),
        ("  Multiple \t choice\n", "multiple choice"),
        ("MCQ", "multiple choice"),
        ("Open-Ended", "open ended"),
        ("OCR", "ocr"),
        ("Yes / No", "yes/no"),
        ("yes-no", "yes/no"),
        ("svg-code", "svg code"),
        ("Code (Python)", "code (python)"),
        ("code(python)", "code (python)"),
        ("free-form", "free form"),
        ("juggling_with-fire", "juggling with fire"),
        ("", ""),
    ],
)
def test_one_spelling(text, expected):
    assert canonical(text) == expected


@pytest.mark.parametrize("task", SAMPLES)
def test_what_built_in_rewards_serve_stays_as_it_is(task):
    assert canonical(task) == task
    assert canonical(task.upper().replace(" ", "_")) == task


def test_spellings_lead_to_served_types():
    assert set(SPELLINGS.values()) <= set(SAMPLES)
    assert not set(SPELLINGS) & set(SAMPLES)
    assert set(TEMPLATES) <= set(SAMPLES)


@pytest.mark.parametrize(
    ("task", "name"),
    [("yes/no", "yes_no"), ("code (python)", "code_python"), ("../../etc", "etc"), ("größe", "größe"), ("_x", "x")],
)
def test_names_of_templates(task, name):
    assert template_name(task) == name
