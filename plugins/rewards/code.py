"""Code that draws, marks up or computes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from attrs import define, field, validators

from evr1_core.api import BadGoldError, Reward, RewardInput, RewardResult, Sample
from evr1_core.api.answers import gold_text
from evr1_core.api.sandbox import Sandbox
from evr1_core.api.workers import Failed, Workers
from evr1_plugins.rewards._unit_tests import num_passed, read_tests

LANGUAGES = ("svg", "html", "python")
_FENCE = re.compile(r"```[\w+-]*[^\S\n]*\n(.*?)```", re.DOTALL)


@define(kw_only=True)
class Code(Reward):
    """Likeness to the gold program, a share in [0, 1]. The answer is the code, bare or in one fence.

    SVG: 0.7 of the pixels and 0.3 of the elements. Both are drawn at 256 pixels; the pixels give 1 less the mean difference where
    either is not blank, weighted by the stronger mark (marks of one colour: intersection over union), the elements the F1 of how
    often each occurs. Words are not drawn and count among the elements; pictures and links to outside are left out. HTML: 0.6 of
    the F1 of elements, attributes and nesting and 0.4 of that of the text, by the longest common subsequence of words. Python: F1
    of the nodes of the syntax trees, each with its children; own names may differ.

    With ``execute`` and ``tests`` in a record of Python: the share of the tests that the answer passes. A test is ``assert CALL ==
    LITERAL``, a call with the expected value, or an input with the expected output. Answers are run in the sandbox alone; where
    there is none, the run does not start.

    Parsing and drawing run in a worker process that is killed at the limit of processor time: 0. One that the machine holds up for
    ten times as long is not judged. The language comes from the problem type, else from the record's ``subtype`` or ``language``,
    else it is Python. Raises BadGoldError when the gold is not of its language. Sources: CodeBLEU (arXiv:2009.10297) for syntax
    trees, Design2Code (arXiv:2403.03163) for pages.
    """

    api = 1
    tasks = frozenset({"svg code", "html code", "code", "python", "python code", "code (python)"})

    workers: int = field(default=1, validator=validators.ge(1), metadata={"help": "worker processes"})
    time_limit: float = field(default=0.9, validator=validators.gt(0), metadata={"help": "processor seconds for one comparison"})
    execute: bool = field(default=False, metadata={"help": "run Python answers against the tests of their records, in the sandbox"})
    sandbox: Sandbox = field(factory=Sandbox, metadata={"help": "limits of an executed answer"})
    _pool: Workers = field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        if self.execute:
            self.sandbox.check("rewards.code.options.sandbox")
        self._pool = Workers("evr1_plugins.rewards._compared:compare", size=self.workers, time_limit=self.time_limit)

    def score(self, item: RewardInput) -> RewardResult:
        return self._one(item)

    def score_batch(self, items: Sequence[RewardInput]) -> list[RewardResult]:
        with ThreadPoolExecutor(self.workers) as threads:
            return list(threads.map(self._one, items))

    def _one(self, item: RewardInput) -> RewardResult:
        gold, wanted = program(gold_text(item.sample)), language(item.sample)
        answer = program(item.answer or "")
        if self.execute and wanted == "python" and (tests := read_tests(item.sample)):
            if not answer.strip():
                return RewardResult(accuracy=0.0, parsed=False, note="no code")
            count = num_passed(answer, tests, self.sandbox)
            return RewardResult(accuracy=count / len(tests), parsed=True, note=f"passed {count} of {len(tests)} tests")
        request = {"language": wanted, "guess": answer, "gold": gold}
        return self._result(item.sample, request, self._pool.ask(request))

    def _result(self, sample: Sample, request: dict[str, str], reply: object) -> RewardResult:
        wanted = request["language"]
        if isinstance(reply, Failed):
            if reply.reason == "stalled":
                return RewardResult(accuracy=None, parsed=False, note=f"held up: {reply.detail}")
            if problem := self._fault({**request, "guess": request["gold"]}):
                raise BadGoldError(sample, f"{wanted} code that can be compared ({problem})")
            return RewardResult(accuracy=0.0, parsed=False, note=f"cannot be compared: {reply.detail}")
        assert isinstance(reply, dict)
        if reply.get("unread") == "gold":
            raise BadGoldError(sample, f"{wanted} code of moderate size")
        if "unread" in reply:
            return RewardResult(accuracy=0.0, parsed=False, note=f"no {wanted} code of moderate size")
        return RewardResult(accuracy=reply["similarity"], parsed=True, note=f"compared as {wanted}")

    def _fault(self, request: dict[str, str]) -> str:
        """Why the gold cannot be compared even with itself, tried twice; "" when it can, or when the machine held that up."""
        for _ in range(2):
            reply = self._pool.ask(request)
            if not isinstance(reply, Failed) or reply.reason == "stalled":
                return ""
        return reply.detail

    def close(self) -> None:
        self._pool.close()


def language(sample: Sample) -> str:
    """svg, html or python. Raises BadGoldError for a record that names another one."""
    named = sample.extra.get("language") or sample.extra.get("subtype") or "python"
    word = sample.task.partition(" ")[0] if sample.task != "code" else str(named).lower()
    found = next((name for name in LANGUAGES if name == word), "python" if word in ("code", "py", "python3") else None)
    if found is None:
        raise BadGoldError(sample, f"code in {', '.join(LANGUAGES)}: its language is {named!r}")
    return found


def program(text: str) -> str:
    """The content of the one fence of a text; a text without a fence, or with several, as it is."""
    fences = _FENCE.findall(text)
    return fences[0] if len(fences) == 1 else text
