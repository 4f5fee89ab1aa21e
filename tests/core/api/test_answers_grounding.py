"""JSON, spans, boxes and tubes: rewards.md and benchmarks.md 5.4 and 5.5."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evr1_core.api import BoxSpace
from evr1_core.api.answers import Tube, box, boxes, json_values, one_box, parse_json, read_tube, span, spans, tube
from evr1_core.api.spaces import clamped

SPANS = [
    ('{"time": [3.2, 5.1]}', (3.2, 5.1)),
    ('```json\n{"time": [3.2, 5.1]}\n```', (3.2, 5.1)),
    ('The event: {"time": [3.2, 5.1]}.', (3.2, 5.1)),
    ('{"timestamp": [3.2, 5.1]}', (3.2, 5.1)),
    ('{"start": "00:12", "end": "00:19.5"}', (12, 19.5)),
    ('{"time": ["3.2s", "5.1s"]}', (3.2, 5.1)),
    ('{"time": "3.2 to 5.1 seconds"}', (3.2, 5.1)),
    ("[90, 150]", (90, 150)),
    ("[3.2s, 5.1s]", (3.2, 5.1)),
    ("{'time': [3.2, 5.1]}", (3.2, 5.1)),
    ('{"start_time": 3.2, "end_time": 5.1}', (3.2, 5.1)),
    ('{"time": {"start": 3.2, "end": 5.1}}', (3.2, 5.1)),
    ("Start time: 3.2s; End time: 5.1s", (3.2, 5.1)),
    ("from 00:03 until 00:05", (3, 5)),
    ("(90, 150)", (90, 150)),
    ("from 3.2 to 5.1 seconds", (3.2, 5.1)),
    ("from 3.2s - 5.1s", (3.2, 5.1)),
    ("3.2 - 5.1 seconds", (3.2, 5.1)),
    ("3.2s~5.1s", (3.2, 5.1)),
    ("3.2–5.1 s", (3.2, 5.1)),
    ("It starts at 4 s and ends at 9 s", (4, 9)),
    ("between 4 and 9 seconds", (4, 9)),
    ("00:12 to 00:19", (12, 19)),
    ("0:12-0:19", (12, 19)),
    ("00:03-00:05", (3, 5)),
    ("01:02:03 - 01:02:10", (3723, 3730)),
    ("1:02:03.5 to 1:02:10", (3723.5, 3730)),
    ("00:01:05.500 --> 00:01:10.000", (65.5, 70)),
    ("9.0 to 4.0 seconds", (4, 9)),
    ("1 min 5 s to 1 min 15 s", (65, 75)),
    ("1 to 2 minutes", (60, 120)),
    ("**3 to 5 seconds**", (3, 5)),
    ("In the 2 clips shown, the jump lasts from 3.0 to 5.0 seconds.", (3, 5)),
    ("3秒到5秒", (3, 5)),
    # none
    ("around 12 seconds", None),
    ("at 4 seconds", None),
    ('{"time": [4]}', None),
    ('{"time": [1, 2, 3]}', None),
    ('{"time": [NaN, 5]}', None),
    ('{"time": [0, Infinity]}', None),
    ('{"time": [1e999, 5]}', None),
    ('{"time": [-1, 5]}', None),
    ('{"time": [true, 5]}', None),
    ('{"time": null}', None),
    ("-3 to 5 seconds", None),
    ("3 to 5 frames", None),
    ("3200 to 5100 ms", None),
    ("1 to 2 or 5 to 6 seconds", None),
    ('{"time": [[1, 2], [5, 6]]}', None),
    ("", None),
]


@pytest.mark.parametrize(("text", "expected"), SPANS)
def test_span_strict(text: str, expected: tuple[float, float] | None) -> None:
    assert span(text) == expected


def test_span_lenient_takes_the_last() -> None:
    assert span("1 to 2, no, 5 to 6 seconds", mode="lenient") == (5, 6)
    assert spans('{"time": [[1, 2], [6, 5]]}') == [(1, 2), (5, 6)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"time": [3.2, 5.1], "boxes": {"3": [1, 2', (3.2, 5.1)),
        ('{"time": [3.2, 5.1', None),  # 5.1 may go on
        ('{"start": 3.2, "end": 5.1, "why": "the dog', (3.2, 5.1)),
        ('{"start": 3.2, "end": 5.1', (3.2, 5.1)),  # as words, not as JSON
        ('{"time": [1, 2]} or rather {"time": [5, 9], ', (5, 9)),
        ("[-3, 5]", (0, 5)),
        ("[3, 99]", (3, 60)),
        ("[70, 99]", (60, 60)),
        ("9.0 to 4.0 seconds", (4, 9)),
        ('{"time": [NaN, 1]} {"time": [1, 2]}', (1, 2)),
        ("around 12 seconds", None),
    ],
)
def test_span_lenient(text: str, expected: tuple[float, float] | None) -> None:
    assert span(text, mode="lenient", duration=60) == expected


def test_span_without_clock() -> None:
    assert span("00:03-00:05", clock=False) is None
    assert span('{"time": ["00:03", "00:05"]}', clock=False) is None
    assert span("3 to 5 s", clock=False) == (3, 5)


@given(st.lists(st.floats(0, 1e6), min_size=2, max_size=2))
def test_span_in_any_form(times: list[float]) -> None:
    start, end = sorted(round(t, 3) for t in times)
    for text in (json.dumps({"time": [end, start]}), f"[{start}, {end}]", f"from {start:.3f} to {end:.3f} seconds"):
        assert span(text) == pytest.approx((start, end))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("[10, 20, 30, 40]", (10, 20, 30, 40)),
        ('{"boxes": [30, 40, 10, 20]}', (10, 20, 30, 40)),
        ('{"bbox_2d": [10, 20, 30, 40], "label": "cat"}', (10, 20, 30, 40)),
        ('[{"bbox_2d": [10, 20, 30, 40]}]', (10, 20, 30, 40)),
        ('{"boxes": [[10, 20, 30, 40]]}', (10, 20, 30, 40)),
        ("The box is (10, 20, 30, 40).", (10, 20, 30, 40)),
        ("It is [10, 20, 30, 40] in the frame", (10, 20, 30, 40)),
        ('{"boxes": [10, 20, 30]}', None),
        ('{"boxes": [10, 20, 30, NaN]}', None),
        ('{"boxes": ["10", 20, 30, 40]}', None),
        ('{"boxes": [[1, 2, 3, 4], [5, 6, 7, 8]]}', None),
        ("(10, 20)", None),
        ("(a, b, c, d)", None),
        ('{"time": [1, 2]}', None),
        ("", None),
    ],
)
def test_one_box(text: str, expected: tuple[float, ...] | None) -> None:
    assert one_box(text) == expected


def test_several_boxes() -> None:
    assert boxes("[[1, 2, 3, 4], [5, 6, 7, 8]]") == [(1, 2, 3, 4), (5, 6, 7, 8)]
    assert one_box("[[1, 2, 3, 4], [5, 6, 7, 8]]", mode="lenient") == (5, 6, 7, 8)
    assert box((4, 3, 2, 1)) == (2, 1, 4, 3)
    assert box([1, 2, 3, math.inf]) is None


def test_tube_keys_are_numbers() -> None:
    one = (1.0, 2.0, 3.0, 4.0)
    for key in ("9", "9.0", "9s", "00:09", " 9 "):
        assert tube({"boxes": {key: [1, 2, 3, 4]}}) == {9.0: one}
    assert tube({"boxes": {"18": [1, 2, 3, 4], "18.0": [5, 6, 7, 8]}}) == {18.0: one}
    assert tube({"boxes": {"1:00": [1, 2, 3, 4]}}) == {60.0: one}
    for keys in (("3", "3.0"), ("3.0", "3", "3s"), ("3", "3")):
        later = ", ".join(f'"{key}": [5, 6, 7, 8]' for key in keys[1:])
        assert tube(parse_json(f'{{"boxes": {{"{keys[0]}": [1, 2, 3, 4], {later}}}}}')) == {3.0: one}
    assert tube([{"time": 9, "bbox": [1, 2, 3, 4]}]) == {9.0: one}
    assert tube({"boxes": {"9": [1, 2, 3]}}) == {9.0: None}
    assert tube({"boxes": {}}) == {}
    assert tube({"boxes": {"nine": [1, 2, 3, 4]}}) is None
    assert tube({"boxes": [1, 2, 3, 4]}) is None
    assert tube({"time": [1, 2]}) is None
    assert tube(3) is None


def test_tube_lenient() -> None:
    one, two = (1.0, 2.0, 3.0, 4.0), (5.0, 6.0, 7.0, 8.0)
    text = '{"time": [3, 9.5], "boxes": {"3": [1, 2, 3, 4], "4": [5, 6, 7, 8], "5": [1, 2'
    assert read_tube(text) is None or read_tube(text) == Tube(None, {})
    assert read_tube(text, mode="lenient") == Tube((3, 9.5), {3.0: one, 4.0: two})
    assert tube({"boxes": {"2.5": [1, 2, 3, 4], "3": [5, 6, 7, 8], "3.49": [5, 6, 7, 8]}}, mode="lenient") == {3.0: one}
    assert tube({"boxes": {"1": [1], "2": [1, 2, 3, 4], "3": [1, 2]}}, mode="lenient") == {1.0: None, 2.0: one}
    assert tube({"boxes": {"nine": [1, 2, 3, 4], "1": [1, 2, 3, 4]}}, mode="lenient") == {1.0: one}
    entries = '[{"time": 1, "bbox": [1, 2, 3, 4]}, {"time": 2, "bbox": [5, 6, 7, 8]}, {"time": 3, "bb'
    assert read_tube(entries, mode="lenient") == Tube(None, {1.0: one, 2.0: two})
    assert read_tube('{"time": [1, 2]} {"time": [3, 4]}') is None
    assert read_tube('{"time": [1, 2]} {"time": [3, 4]}', mode="lenient") == Tube((3, 4), {})
    assert read_tube("from 3 to 5 seconds") == read_tube("from 3 to 5 seconds", mode="lenient") == Tube((3, 5), {})
    assert read_tube(None) is None


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ('{"a": 1, "b": [1, 2], "c": "x, y', [{"a": 1, "b": [1, 2]}]),
        ('{"a": 1', []),
        ('{"a": {"b": {"c": 1, ', [{"a": {"b": {"c": 1}}}]),
        ("[[1, 2], [3, 4], [5", [[[1, 2], [3, 4]]]),
        ("[1, 2, 3", []),
        ('[1 (see [2]) then {"a": 1} and', [[2], {"a": 1}]),
        ('see [this: {"a": 1, "b": 2', [{"a": 1}]),
        ('{"a": 1} {"b": 2, "c', [{"a": 1}, {"b": 2}]),
        ('{"a": "}", "b', [{"a": "}"}]),
        ('```json\n{"a": 1,\n', [{"a": 1}]),
    ],
)
def test_json_that_was_cut_off(text: str, values: list[object]) -> None:
    assert json_values(text, mode="lenient") == values


@settings(max_examples=60)
@given(
    st.recursive(
        st.integers(0, 99) | st.text('ab,]"', max_size=3),
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text("ab", max_size=3), inner, max_size=4),
        max_leaves=12,
    )
)
def test_whole_json_reads_the_same_in_both_modes_and_a_part_never_invents(value: object) -> None:
    text = json.dumps([value])
    assert json_values(text) == json_values(text, mode="lenient")
    for end in range(len(text)):
        for found in json_values(text[:end], mode="lenient")[:1]:
            if text.startswith("[[") or text.startswith("[{"):
                assert contained(found, [value]) or any(contained(found, inner) for inner in within(value))


def contained(part: object, whole: object) -> bool:
    """Whether ``part`` is ``whole`` without some last entries, at any depth."""
    if isinstance(part, list) and isinstance(whole, list):
        return len(part) <= len(whole) and all(map(contained, part, whole))
    if isinstance(part, dict) and isinstance(whole, dict):
        return all(key in whole and contained(one, whole[key]) for key, one in part.items())
    return bool(part == whole)


def within(value: object) -> list[object]:
    """The lists and dicts inside a value, itself included."""
    if isinstance(value, list):
        return [value, *(one for inner in value for one in within(inner))]
    if isinstance(value, dict):
        return [value, *(one for inner in value.values() for one in within(inner))]
    return []


def test_boxes_are_clamped_to_the_frame() -> None:
    pixel = BoxSpace(kind="pixel", width=640, height=480)
    assert clamped((-5, 10, 700, 500), pixel) == (0, 10, 640, 480)
    assert clamped((10, 20, 30, 40), pixel) == (10, 20, 30, 40)
    assert clamped((-5, 10, 1200, 500), BoxSpace(kind="norm1000")) == (0, 10, 1000, 500)
    assert clamped((-5, 10, 700, 500), BoxSpace(kind="pixel")) == (-5, 10, 700, 500)


def test_json_in_prose() -> None:
    assert json_values('a [x] {"a": "}"} b [1, [2]] c') == [{"a": "}"}, [1, [2]]]
    assert json_values('never closed [ then {"a": 1}') == [{"a": 1}]
    assert json_values('wrong ] order } {"a": 1}') == [{"a": 1}]
    assert json_values('a lone " quote [1]') == [[1]]
    assert parse_json('{"a": 1, "a": 2}') == {"a": 1}
    assert parse_json("```json\n[1]\n```") == [1]
    assert parse_json("[" * 1000 + "]" * 1000) is None
    assert parse_json("9" * 5000) == math.inf
    assert parse_json('{"a": 1} and more') is None


json_values_strategy = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=5), json_values_strategy, max_size=3), st.text(alphabet="ab .,;:'(", max_size=20))
def test_json_is_found_in_any_sentence(value: dict[str, object], prose: str) -> None:
    assert json_values(f"{prose}{json.dumps(value)}{prose}") == [value]
