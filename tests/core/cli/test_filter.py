"""`evr1 filter` with a tiny real model: what is kept, what is written, and that a killed pass goes on."""

from __future__ import annotations

import gc
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evr1_core.cli.main import main
from evr1_core.demo.scenes import random_scene, write_film
from tests.tiny import tiny_folder

REWARD = '''\
"""Throws dice: a model with random weights is right as often as the record says."""

from attrs import define

from evr1_core.api import NotJudgedError, Reward, RewardInput, RewardResult


@define(kw_only=True)
class Dice(Reward):
    """Right with `tenths` / 10 of the responses; without `tenths` there is no verdict."""

    api = 1
    tasks = frozenset({"dice", "coin"})

    def score(self, item: RewardInput) -> RewardResult:
        if item.answer == item.sample.answer:
            return RewardResult(accuracy=1.0, parsed=True)
        if item.sample.extra["tenths"] is None:
            raise NotJudgedError("the judge is out")
        thrown = sum(item.response.encode()) % 10
        return RewardResult(accuracy=0.5 if thrown < item.sample.extra["tenths"] else 0.49, parsed=True)
'''
ENGINE = '''\
"""An engine beside the process, as far as the caller can tell: it takes calls while it works, and answers out of order."""

import asyncio
import json
from pathlib import Path

from attrs import define, field

from evr1_core.api import RolloutEngine
from evr1_plugins.engines.hf import HuggingFaceEngine


@define(kw_only=True)
class Beside(RolloutEngine):
    """Writes down how many calls it had, and at most at a time."""

    api = 1
    appetite = 3
    _inner: HuggingFaceEngine = field(factory=HuggingFaceEngine, init=False)
    _calls: list[int] = field(factory=list, init=False)
    _now: int = field(default=0, init=False)

    async def start(self, model_path, family, processor, module):
        assert module is None
        await self._inner.start(model_path, family, processor, None)

    async def generate(self, requests):
        self._now += 1
        self._calls.append(self._now)
        await asyncio.sleep(0.05 if len(self._calls) % 3 == 1 else 0.01)
        self._now -= 1
        return await self._inner.generate(requests)

    async def close(self):
        Path("calls.json").write_text(json.dumps(self._calls))
'''
CONFIG = """\
model: {path: %s}
rewards: {"dice.py:Dice": {}}
rollout: {max_response_tokens: 4, engine: {name: hf, options: {prompts_per_batch: 4}}}
train: {threads: 1}
frames: {video_min_pixels: 4096, video_max_pixels: 4096, video_frames: 2}
"""
TENTHS = (0, 5, 10, 5, 5, 2, 8, 5, 0, 10)

Start = Callable[..., tuple[int, str, str]]


@pytest.fixture(name="start")
def _start(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Start:
    """Runs the command in a folder with settings, a reward and data; (status, stdout, stderr)."""
    monkeypatch.chdir(tmp_path)
    prepare(tmp_path)
    capsys.readouterr()  # what writing the checkpoint has printed

    def start(*words: str) -> tuple[int, str, str]:
        try:
            status = main(["filter", *words])
        except SystemExit as end:  # argparse
            status = int(end.code or 0)
        return status, *capsys.readouterr()

    return start


def prepare(folder: Path) -> None:
    (folder / "dice.py").write_text(REWARD)
    (folder / "run.yaml").write_text(CONFIG % tiny_folder())
    write(folder / "x.jsonl", [row(tenths) for tenths in TENTHS])


def row(tenths: int | None, **more: Any) -> dict[str, Any]:
    return {"problem": f"Throw below {tenths}.", "answer": "gold", "problem_type": "dice", "tenths": tenths, **more}


def write(path: Path, rows: list[dict[str, Any]]) -> None:
    path.write_text("".join(json.dumps(each) + "\n" for each in rows))


def read(path: str | Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(path).read_text().splitlines()]


def sampled(out: str) -> int:
    """How many records were sampled."""
    return next(int(line.split()[0]) for line in out.splitlines() if " records sampled" in line)


def test_records_in_between_are_kept(start: Start) -> None:
    status, out, err = start("x.jsonl")
    assert status == 0, err
    rates = read("x.rates.jsonl")
    assert [each["uid"] for each in rates] == [f"x:{number}" for number in range(10)]
    assert {each["k"] for each in rates} == {8}
    for each in rates:
        assert each["pass_rate"] == sum(accuracy >= 0.5 for accuracy in each["accuracies"]) / 8
    assert [rates[number]["pass_rate"] for number in (0, 2, 8, 9)] == [0, 1, 0, 1]
    lines = Path("x.jsonl").read_text().splitlines(keepends=True)
    kept = [line for line, each in zip(lines, rates, strict=True) if 0 < each["pass_rate"] < 1]
    assert len(kept) >= 4
    assert Path("x.kept.jsonl").read_text() == "".join(kept)
    shares = [each["pass_rate"] for each in rates]
    counts = [len(kept), shares.count(1), shares.count(0), 0]
    assert out.splitlines()[1].split() == ["dice", "10", *map(str, counts), f"{sum(shares) / 10:.4f}"]
    cut_off = sum(each["truncated"] for each in rates) / 80
    assert cut_off > 0.5
    assert f"{cut_off:.1%} of the responses were cut off at rollout.max_response_tokens" in out
    assert out.splitlines()[-2:] == [
        "10 records sampled, pass rates in x.rates.jsonl",
        f"{len(kept)} of 10 records kept, in x.kept.jsonl",
    ]


def test_other_thresholds_sample_nothing_again(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    assert start("x.jsonl")[0] == 0
    monkeypatch.setattr("evr1_core.train.session.load_model", None)  # whoever calls it fails
    rates = [each["pass_rate"] for each in read("x.rates.jsonl")]
    _, out, _ = start("x.jsonl", "--low", "0.3", "--high", "0.7", "--out", "y.jsonl")
    assert sampled(out) == 0
    assert [each["tenths"] for each in read("y.jsonl")] == [
        tenths for tenths, rate in zip(TENTHS, rates, strict=True) if 0.3 < rate < 0.7
    ]
    status, out, err = start("x.jsonl", "--threshold", "0.51", "--out", "z.jsonl")
    assert (status, err) == (2, "no record of x.jsonl is kept, so nothing was written\n")
    assert out.splitlines()[1].split() == ["dice", "10", "0", "0", "10", "0", "0.0000"]
    assert not Path("z.jsonl").exists()


def test_what_changed_is_sampled_again(start: Start) -> None:
    """A record, its place, and settings that decide what is answered; not those that decide how fast."""
    rows = [row(tenths) for tenths in TENTHS[:4]]
    write(Path("x.jsonl"), rows)
    assert sampled(start("x.jsonl")[1]) == 4
    write(Path("x.jsonl"), [*rows[:3], rows[3] | {"problem": "Throw."}, row(5)])
    assert sampled(start("x.jsonl")[1]) == 2
    write(Path("x.jsonl"), [row(5), *rows[:3]])
    assert sampled(start("x.jsonl")[1]) == 4
    same = ["rollout.engine.options.prompts_per_batch=1", "reward.format_weight=0", "train.lr=1"]
    assert sampled(start("x.jsonl", *(word for text in same for word in ("--set", text)))[1]) == 0
    for text in ("rollout.temperature=0.5", "train.seed=1", "data.prompt_style=direct", "rollout.max_response_tokens=3"):
        assert sampled(start("x.jsonl", "--set", text)[1]) == 4
    assert sampled(start("x.jsonl", "-k", "4")[1]) == 4
    Path("dice.py").write_text(REWARD.replace("% 10", "% 9"))
    assert sampled(start("x.jsonl")[1]) == 4


def test_draws_do_not_depend_on_what_is_beside(start: Start) -> None:
    start("x.jsonl")
    start("x.jsonl", "--rates", "other.jsonl", "--set", "rollout.engine.options.prompts_per_batch=3")
    assert read("x.rates.jsonl") == read("other.jsonl")


def test_an_engine_beside_the_process_is_kept_busy(start: Start) -> None:
    start("x.jsonl")
    Path("beside.py").write_text(ENGINE)
    status, _, err = start("x.jsonl", "--rates", "other.jsonl", "--set", "rollout.engine=beside.py:Beside")
    assert status == 0, err
    calls = json.loads(Path("calls.json").read_text())
    assert (len(calls), max(calls)) == (10, 3)
    found = {each["uid"]: each["accuracies"] for each in read("other.jsonl")}
    assert found == {each["uid"]: each["accuracies"] for each in read("x.rates.jsonl")}


def test_an_engine_that_is_gone_is_one_message(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    """Also when several calls fail at a time; what was answered is stored."""
    gone = 'if len(self._calls) > 5: raise EngineError("it is gone")'
    Path("beside.py").write_text(
        ENGINE.replace("import RolloutEngine", "import EngineError, RolloutEngine").replace(
            "self._now -= 1", f"self._now -= 1\n        {gone}"
        )
    )
    status, out, err = start("x.jsonl", "--set", "rollout.engine=beside.py:Beside")
    gc.collect()
    assert (status, out, err) == (2, "", "it is gone\n")
    assert not caplog.records
    assert 1 <= len(read("x.rates.jsonl")) <= 5


def test_records_by_type_and_what_failed(start: Start, tmp_path: Path) -> None:
    write_film(random_scene(np.random.default_rng(0)), tmp_path / "film.mp4")
    (tmp_path / "bad.mp4").write_bytes(b"<html>404</html>")
    film = row(5, problem_type="coin", videos=["film.mp4"])
    rows = [row(5), film, film | {"videos": ["bad.mp4"]}, row(None), row(5, problem="long " * 400)]
    write(Path("x.jsonl"), rows)
    status, _, err = start("x.jsonl")
    assert status == 2
    assert "x.jsonl:3: record 'x:2'" in err
    assert "data.on_bad_media: skip" in err
    assert not Path("x.rates.jsonl").exists()
    skip = ("data.on_bad_media=skip", "data.max_bad_media=0.3", "rollout.max_prompt_tokens=300", "rollout.on_long_prompt=skip")
    words = ["x.jsonl", *(word for text in skip for word in ("--set", text))]
    status, out, err = start(*words)
    assert status == 0, err
    assert [line.split()[:6] for line in out.splitlines()[1:4]] == [
        ["coin", "2", "1", "0", "0", "1"],
        ["dice", "3", "1", "0", "0", "2"],
        ["all", "5", "2", "0", "0", "3"],
    ]
    assert [line.partition(": record")[0] for line in err.splitlines()] == [f"left out: x.jsonl:{line}" for line in (3, 5, 4)]
    assert "no response was judged (the judge is out)" in err
    assert [each["uid"] for each in read("x.rates.jsonl")] == ["x:0", "x:1", "x:3"]
    assert read("x.rates.jsonl")[2]["pass_rate"] is None
    assert read("x.kept.jsonl") == rows[:2]
    Path("other").mkdir()
    _, out, err = start(*words, "--out", "other/x.jsonl")
    assert sampled(out) == 1  # the judge may be back
    assert f"media paths are relative to {tmp_path}: set data.media_root to it" in err


def test_a_film_that_breaks_off_when_it_is_decoded(start: Start, tmp_path: Path) -> None:
    """Its packets are all there, so that no check before the pass finds anything; records after it are sampled all the same."""
    write_film(random_scene(np.random.default_rng(0)), tmp_path / "film.mp4")
    content = bytearray((tmp_path / "film.mp4").read_bytes())
    first = content.index(b"mdat") + 4
    content[first : first + 4000] = bytes(4000)
    (tmp_path / "film.mp4").write_bytes(content)
    rows = [row(5) for _ in range(6)]
    rows[1] |= {"videos": ["film.mp4"]}
    write(Path("x.jsonl"), rows)
    status, _, err = start("x.jsonl")
    assert status == 2
    assert "x.jsonl:2: record 'x:1'" in err
    assert "data.on_bad_media: skip" in err
    skip = ("x.jsonl", "--set", "data.on_bad_media=skip", "--set")
    status, _, err = start(*skip, "data.max_bad_media=0.1")
    assert status == 2
    assert "16.67% of the records" in err
    status, out, err = start(*skip, "data.max_bad_media=0.2")
    assert status == 0, err
    assert out.splitlines()[1].split()[5] == "1"
    assert err.startswith("left out: x.jsonl:2: record 'x:1'")
    assert [each["uid"] for each in read("x.rates.jsonl")] == [f"x:{number}" for number in (0, 2, 3, 4, 5)]


@pytest.mark.parametrize("ending", [".json", ".parquet"])
def test_other_kinds_of_files(start: Start, ending: str) -> None:
    rows = [row(tenths, film={"cut": [1.5, None], "n": tenths}) for tenths in TENTHS[:4]]
    if ending == ".json":
        Path("y.json").write_text(json.dumps(rows))
    else:
        pyarrow = pytest.importorskip("pyarrow")
        from pyarrow import parquet

        parquet.write_table(pyarrow.Table.from_pylist(rows), "y.parquet")
    assert start(f"y{ending}")[0] == 0
    rates = [each["pass_rate"] for each in read("y.rates.jsonl")]
    wanted = [each for each, rate in zip(rows, rates, strict=True) if 0 < rate < 1]
    if ending == ".json":
        assert json.loads(Path("y.kept.json").read_text()) == wanted
    else:
        assert parquet.read_table("y.kept.parquet").to_pylist() == wanted


BAD: list[tuple[list[str], str]] = [
    (["none.jsonl"], "none.jsonl: there is no such file"),
    (["."], ".: there is no such file"),
    (["x.txt"], "x.txt: unknown kind of file"),
    (["x.jsonl", "--model", "none"], "--model: none is no checkpoint folder"),
    (["x.jsonl", "--rewards", "none"], "--rewards: no reward 'none'"),
    (["x.jsonl", "--rewards", "mcq"], "x.jsonl:1: record 'x:0': no chosen reward serves problem type 'dice'"),
    (["x.jsonl", "--set", "rollout.temprature=1"], "did you mean rollout.temperature?"),
    (["x.jsonl", "--set", "rollout.top_p=0.5"], "rollout.top_p: training needs samples of the whole distribution"),
    (["x.jsonl", "--set", "lora.start=adapter"], "lora.start: adapter holds no adapter"),
    (["x.jsonl", "--out", "y.json"], "--out: the kept rows stay as they are, so y.json must end in .jsonl"),
    (["x.jsonl", "--out", "none/y.jsonl"], "--out: none/y.jsonl is no file, or its folder does not exist"),
    (["x.jsonl", "--rates", "/dev/full"], "--rates: /dev/full is no file, or its folder does not exist"),
    (["x.jsonl", "--out", "./x.jsonl"], "--out: x.jsonl is the file that is read"),
    (["x.jsonl", "--rates", "x.kept.jsonl"], "--rates: x.kept.jsonl is the file that the kept rows go to"),
    (["x.jsonl", "--rates", "dice.py"], "dice.py:1: no row of pass rates"),
    (["x.jsonl", "--rates", "half.jsonl"], "half.jsonl: holds something else than pass rates"),
    (["x.jsonl", "--low", "0.5", "--high", "0.5"], "--low: must be below --high = 0.5; is 0.5"),
    (["x.jsonl", "--high", "1.1"], "argument --high: must be in [0, 1]; is 1.1"),
    (["x.jsonl", "--low", "nan"], "argument --low: must be in [0, 1]; is nan"),
    (["x.jsonl", "--threshold", "0"], "argument --threshold: must be above 0 and at most 1; is 0"),
    (["x.jsonl", "-k", "1"], "argument -k: must be a whole number from 2 on, since one response is right or wrong; is 1"),
    (["x.jsonl", "-k", "many"], "is many"),
    ([], "the following arguments are required: DATA"),
]


@pytest.mark.parametrize(("words", "message"), BAD)
def test_bad_input_is_one_message(start: Start, words: list[str], message: str) -> None:
    Path("x.txt").write_text("x")
    Path("half.jsonl").write_text('{"uid": "x:0"}')
    before = {path.name: path.read_bytes() for path in Path().iterdir()}
    status, out, err = start(*words)
    assert (status, out) == (2, "")
    assert message in err
    assert "Traceback" not in err
    assert {path.name: path.read_bytes() for path in Path().iterdir() if path.name != "x.rates.jsonl"} == before


def test_a_bad_gold_is_found_before_anything_is_sampled(start: Start) -> None:
    write(Path("x.jsonl"), [row(5), row(5, answer=" gold")])
    status, out, err = start("x.jsonl")
    assert (status, out) == (2, "")
    assert "x.jsonl:2: record 'x:1' (dice): its own gold scores" in err


def test_a_changed_file_is_not_cut_by_old_numbers(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    from evr1_core.train import filtering

    changed = filtering.score_groups

    def later(*arguments: Any) -> Any:
        write(Path("x.jsonl"), [row(3)])
        return changed(*arguments)

    monkeypatch.setattr(filtering, "score_groups", later)
    status, _, err = start("x.jsonl")
    assert (status, err) == (2, "x.jsonl: was changed in the meantime; run the command again, which samples what is new\n")
    assert not Path("x.kept.jsonl").exists()


def test_a_torn_line_is_sampled_again(start: Start) -> None:
    start("x.jsonl")
    whole = Path("x.rates.jsonl").read_bytes()
    kept = Path("x.kept.jsonl").read_bytes()
    lines = whole.splitlines(keepends=True)
    for cut in (1, len(lines[-1]) // 2, len(lines[-1]) - 1):
        Path("x.rates.jsonl").write_bytes(b"".join(lines[:-1]) + lines[-1][:cut])
        Path("x.kept.jsonl").unlink()
        status, out, _ = start("x.jsonl")
        assert (status, sampled(out)) == (0, 1)
        assert Path("x.rates.jsonl").read_bytes() == whole
        assert Path("x.kept.jsonl").read_bytes() == kept


def test_one_writer_at_a_time(start: Start) -> None:
    import fcntl

    with Path("x.rates.jsonl").open("a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        status, _, err = start("x.jsonl")
    assert status == 2
    assert err.startswith("--rates: another process is writing x.rates.jsonl")


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_killed_pass_goes_on(tmp_path: Path) -> None:
    """Killed at random moments until it gets through: nothing is sampled twice, and the result is that of a pass left alone."""
    seed = time.time_ns()
    print("seed", seed)
    chance = random.Random(seed)
    prepare(tmp_path)
    write(tmp_path / "x.jsonl", [row(number % 11, problem=f"Throw {number}.") for number in range(120)])
    rates, kills = tmp_path / "x.rates.jsonl", 0
    command = [
        sys.executable,
        "-m",
        "evr1_core",
        "filter",
        "x.jsonl",
        "--config",
        "run.yaml",
        "--set",
        "rollout.engine.options.prompts_per_batch=2",
    ]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    while True:
        with (tmp_path / "log").open("w") as log:
            process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=log, stderr=log, start_new_session=True)
        goal = count(rates) + chance.randrange(1, 25)
        while process.poll() is None and count(rates) < goal:
            time.sleep(0.01)
        time.sleep(chance.random() * 0.2)
        if process.poll() is not None:
            assert process.returncode == 0, (tmp_path / "log").read_text()
            break
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        kills += 1
        assert not (tmp_path / "x.kept.jsonl").exists() or len(read(tmp_path / "x.kept.jsonl")) > 20
        text = rates.read_bytes()
        if chance.random() < 0.5:  # what a write that was under way may leave
            rates.write_bytes(text + text[: chance.randrange(1, text.index(b"\n"))])
    assert kills
    assert [each["uid"] for each in read(rates)] == [f"x:{number}" for number in range(120)]
    kept = (tmp_path / "x.kept.jsonl").read_bytes()
    subprocess.run([*command, "--rates", "alone.jsonl"], cwd=tmp_path, env=environment, check=True, capture_output=True)
    assert read(tmp_path / "alone.jsonl") == read(rates)
    assert (tmp_path / "x.kept.jsonl").read_bytes() == kept


@pytest.mark.slow
def test_ctrl_c_ends_it_with_a_word(tmp_path: Path) -> None:
    prepare(tmp_path)
    write(tmp_path / "x.jsonl", [row(5, problem=f"Throw {number}.") for number in range(3000)])
    command = [sys.executable, "-c", "import signal, sys; signal.signal(2, signal.default_int_handler)\n"]
    command[-1] += "from evr1_core.cli.main import main; sys.exit(main(['filter', 'x.jsonl']))"
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    while count(tmp_path / "x.rates.jsonl") < 20 and process.poll() is None:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert (process.returncode, said) == (130, "interrupted\n")
    assert 20 <= len(read(tmp_path / "x.rates.jsonl")) < 3000


def count(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0
