"""Whatever stands in a data file: samples, or problems with places; never a traceback."""

import json

from hypothesis import given, settings
from hypothesis import strategies as st

from evr1_core.api import DataError
from evr1_core.config.schema import DataConfig
from evr1_core.data.prompts import PromptTemplates
from evr1_core.data.records import read_samples

KEYS = ["problem", "answer", "options", "problem_type", "data_type", "videos", "images", "data_source"]
KEYS += ["has_offline_trajectory", "offline_output", "path", "start", "end", "other"]
TEXTS = ["x", "<image> <video>", "a.mp4", "text", "video", "", "\ud800", "counting", "A. x"]
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(TEXTS) | st.text(max_size=4)
values = st.recursive(
    scalars, lambda each: st.lists(each, max_size=3) | st.dictionaries(st.sampled_from(KEYS), each, max_size=4), max_leaves=6
)
TEMPLATES = PromptTemplates("", "think")
GOOD = {"problem": "What?", "answer": "x", "problem_type": "ocr"}
rows = st.dictionaries(st.sampled_from(KEYS), values, max_size=4).map(lambda row: {**GOOD, **row}) | values


def read(file):
    """(samples, problems)"""
    try:
        return read_samples([str(file)], DataConfig()), ()
    except DataError as error:
        return [], error.problems


@settings(max_examples=100, deadline=None)
@given(st.lists(rows, min_size=1, max_size=4))
def test_rows(tmp_path_factory, table):
    folder = tmp_path_factory.getbasetemp()
    (folder / "a.mp4").write_bytes(b"x")
    file = folder / "any.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in table))
    samples, problems = read(file)
    assert all(problem.startswith(f"{file}:") for problem in problems)
    assert len(samples) == (0 if problems else len(table))
    for sample in samples:
        assert TEMPLATES.prompt(sample).media == sample.media


@settings(max_examples=100, deadline=None)
@given(st.binary(max_size=40) | st.text('[]{}":,0 \n', max_size=30).map(str.encode), st.sampled_from(["json", "jsonl", "parquet"]))
def test_files(tmp_path_factory, content, ending):
    file = tmp_path_factory.getbasetemp() / f"any.{ending}"
    file.write_bytes(content)
    assert all(problem.startswith(str(file)) for problem in read(file)[1])
