"""Which of two responses is better."""

from __future__ import annotations

from typing import Any

import pytest

from evr1_core.api import BadGoldError, ConfigError, NotJudgedError, RewardInput
from evr1_core.api.judge import JudgeClient
from evr1_core.registry.loading import build_plugin
from evr1_plugins.rewards._preferred import preferred
from evr1_plugins.rewards.preference import Preference, read_label

JUDGE = {"base_url": "http://127.0.0.1:9/v1", "model": "m", "retries": 0}


@pytest.mark.parametrize(
    ("text", "side"),
    [
        *((text, 1) for text in ("1", "A", "[[A]]", "Response one", "**Response 1** is better", "[[A>>B]]", "the first response")),
        ("I prefer the first response over the second", 1),
        ("It is not a tie; Response 1 is better", 1),
        ("Model A outperforms model B", 1),
        ("Response 2 is worse than Response 1", 1),
        *((text, 2) for text in ("2.", "Response 2", "[[B]]", "A<B", "The answer is B", "Response 2 wins", '{"preference": 2}')),
        ("Response 2 is better than Response 1 because it names the colour.", 2),
        ("The second one lists all entities.", 2),
        ("First, the video shows a dog; response 2 is much better", 2),
        ("Response 2 is clearly the better of the two, since both are equally long", 2),
        ("Response 1 is less accurate than Response 2", 2),
        *((text, 0) for text in ("tie", "Tie.", "equal", "both", "[[C]]", "A = B", "They are the same", "Both are good.")),
        ("Response 1 and Response 2 are equally good.", 0),
        ("Neither response 1 nor response 2 is better", 0),
        *((text, None) for text in ("", "3", "entities", "Response 1 or Response 2", "Response 3", "I prefer a response", "A = A")),
        ("Response 1 is better. Response 2 is better.", None),
        ("Response 1 is better, but overall it is a tie", None),
        ("Response 1 is not better than Response 2", None),
        ("Response 1 is not good", None),
        ("Response 1 is the worst", 2),
        ("Response 1\nIt names the colour.", 1),
        ("Response 1 is better.\nResponse 2 is better.", None),
        ("Preferred: 1\nPreferred: 2", None),
        ("Response 1 or Response 2 is better", None),
        ("Response 1/2 is better", None),
        ("Response 1|2", None),
        ("I prefer response 1 and 2", None),
        ("Response 1 is better than Response 2, a tie", None),
    ],
)
def test_preferred(text, side) -> None:
    assert preferred(text) == side


@pytest.mark.parametrize(
    ("gold", "answer", "accuracy", "parsed"), [(2, "2", 1.0, True), ("Tie", "1", 0.0, True), (1, None, 0.0, False)]
)
def test_accuracy(record, score, gold, answer, accuracy, parsed) -> None:
    result = score(Preference(), record("critic", gold), answer)
    assert (result.accuracy, result.parsed) == (accuracy, parsed)


@pytest.mark.parametrize("scorer", ["rule", "judge"])
def test_broken_gold(record, score, scorer) -> None:
    with pytest.raises(BadGoldError, match="a preference"):
        score(Preference(scorer=scorer, judge=JudgeClient(**JUDGE)), record("llava", "7"), "1")


def test_a_judge_that_fails_gives_no_number(record, score) -> None:
    pytest.importorskip("openai")
    reward = Preference(scorer="judge", judge=JudgeClient(**JUDGE))
    result = score(reward, record("preference", 2), "The latter.")
    assert result.accuracy is None
    assert not result.parsed
    assert "connection failed" in result.note
    empty = score(reward, record("preference", 2), " ")
    assert (empty.accuracy, empty.parsed) == (0.0, False)


def test_verdicts_of_a_judge(record, monkeypatch) -> None:
    pytest.importorskip("openai")
    asked = []

    def ask_all(self: JudgeClient, prompts: Any, read: Any) -> list[Any]:
        asked.extend(prompts)
        replies = ["Reasons. Preferred: 2", "**Preferred**: tie", "Preferred: unclear"]
        return [*map(read, replies), NotJudgedError("out of order")]

    monkeypatch.setattr(JudgeClient, "ask_all", ask_all)
    reward = Preference(scorer="judge", judge=JudgeClient(**JUDGE))
    sample = record("preference", "Response 2")
    answers = ["the latter", "", "no difference", "who knows", 'the former"\n{gold}']
    results = reward.score_batch([RewardInput(sample=sample, response="", answer=answer) for answer in answers])
    assert [(result.accuracy, result.parsed) for result in results] == [(1, True), (0, False), (0, True), (0, False), (None, False)]
    assert len(asked) == 4
    assert 'Verdict: "the former\\"\\n{gold}"\n' in asked[3]


@pytest.mark.parametrize(
    ("reply", "label"), [("Preferred: 1\nPreferred: 2", 2), ("preferred: Tie", 0), ("Preferred: 12", None), ("2", None)]
)
def test_read_label(reply, label) -> None:
    assert read_label(reply) == label


def test_options_come_from_the_configuration() -> None:
    pytest.importorskip("openai")
    reward = build_plugin("rewards", "preference", {"scorer": "judge", "judge": JUDGE}, place="rewards.preference")
    assert reward.judge == JudgeClient(**JUDGE)
    with pytest.raises(ConfigError, match=r"judge\.base_url"):
        build_plugin("rewards", "preference", {"scorer": "judge"}, place="rewards.preference")
    with pytest.raises(ConfigError, match=r"judge\.model"):
        build_plugin("rewards", "preference", {"scorer": "judge", "judge": {"base_url": "x"}}, place="rewards.preference")
