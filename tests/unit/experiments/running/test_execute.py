import dataclasses
import json
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from recollect.errors import StoreError
from recollect.experiments.records.compare_records import without_times
from recollect.experiments.records.record import Record
from recollect.experiments.records.scores import recent_accuracy
from recollect.experiments.running import machine, resume
from recollect.experiments.running.execute import Progress, Stopped, execute
from recollect.experiments.specs.build import build
from recollect.experiments.specs.request import Request
from recollect.metrics import evaluate

RequestFor = Callable[..., Request]
NUM_STEPS = 20  # 5 segments of 40 examples in batches of 10
# It is asked whether to stop after each step and, at the end of a segment, before each of the 5
# batches of a look: the fourth step ends a segment, and asks 4 to 8 are in its look.
NUM_ASKS = NUM_STEPS + 5 * 5


def stop_after(asks: int) -> Callable[[], bool]:
    asked = count(1)
    return lambda: next(asked) >= asks


@pytest.mark.parametrize("method", ["van", "er", "er-pc-mir", "gss"])
def test_the_record_holds_what_a_bare_loop_gives(request_for: RequestFor, method: str) -> None:
    request = request_for(method)
    record = execute(request)
    benchmark, learner = build(request.cell, request.seed)
    right, rows = 0, []
    for inputs, labels in benchmark.stream:
        report = learner.observe(inputs, labels)
        right += int((report.updates[0].incoming_outputs.argmax(1) == labels).sum())
        if benchmark.stream.batches_given in benchmark.stream.boundaries:
            counts = evaluate(learner.predict, benchmark.segments, on="validation")
            rows.append(tuple(correct for correct, _ in counts))
    assert record.status == "done"
    assert record.correct == tuple(rows)
    assert record.total == (20,) * 5
    assert (record.prequential_correct, record.prequential_total) == (right, 200)
    assert (record.num_steps, record.num_examples) == (NUM_STEPS, 200)
    assert (record.capacity, len(record.memory)) == ((0, 0) if method == "van" else (20, 7))
    if learner.memory is not None:
        assert dict(zip(record.memory[-1].classes, record.memory[-1].counts, strict=True)) == (
            learner.memory.counts_by_class()
        )


def test_the_curve_has_its_points_over_the_segments_met(request_for: RequestFor) -> None:
    record = execute(request_for())
    # 7 points over 20 batches, rounded; a segment is 4 batches, 10 examples a batch.
    assert [point.seen for point in record.curve] == [30, 60, 90, 110, 140, 170, 200]
    assert [len(point.total) for point in record.curve] == [1, 2, 3, 3, 4, 5, 5]
    assert record.curve[0].total == (10,)


def test_who_left_the_memory_adds_up_to_who_entered(request_for: RequestFor) -> None:
    request = request_for("gss")
    record = execute(request)
    benchmark, learner = build(request.cell, request.seed)
    num_written = sum(
        len(learner.observe(inputs, labels).written_slots) for inputs, labels in benchmark.stream
    )
    num_evicted = sum(sum(point.evicted_counts) for point in record.memory)
    assert num_evicted == num_written - 20
    scored = [p.evicted_mean_score for p in record.memory if p.evicted_counts]
    assert all(score is not None for score in scored)


@pytest.mark.parametrize("asks", [1, 3, 4, 6, 8, 9, 13, 22, NUM_ASKS - 1, NUM_ASKS])
@pytest.mark.parametrize("method", ["van", "er-pc-mir", "gss"])
def test_a_run_that_was_stopped_and_continued_is_the_undisturbed_one(
    request_for: RequestFor, tmp_path: Path, method: str, asks: int
) -> None:
    request, place = request_for(method), tmp_path / "place"
    with pytest.raises(Stopped):
        execute(request, checkpoints=place, should_stop=stop_after(asks))
    continued = execute(request, checkpoints=place)
    assert continued.num_resumes == 1
    assert without_times(continued) == without_times(execute(request))


def test_a_run_stopped_while_it_looked_has_saved_its_last_step(
    request_for: RequestFor, tmp_path: Path
) -> None:
    with pytest.raises(Stopped):
        execute(request_for(), checkpoints=tmp_path, should_stop=stop_after(6))
    assert (tmp_path / "learner-4.ckpt").exists()
    assert json.loads((tmp_path / "run.json").read_text())["tally"]["rows"] == []


def test_a_run_may_be_stopped_again_and_again(request_for: RequestFor, tmp_path: Path) -> None:
    request, place = request_for("er-pc-mir"), tmp_path / "place"
    for _ in range(5):
        with pytest.raises(Stopped):
            execute(request, checkpoints=place, should_stop=stop_after(7))
    continued = execute(request, checkpoints=place)
    assert continued.num_resumes == 5
    assert without_times(continued) == without_times(execute(request))


def test_saving_all_the_time_changes_nothing(request_for: RequestFor, tmp_path: Path) -> None:
    eager = execute(request_for(), checkpoints=tmp_path / "place", checkpoint_share=1e6)
    assert without_times(eager) == without_times(execute(request_for()))
    files = sorted(file.name for file in (tmp_path / "place").iterdir())
    assert files == ["learner-20.ckpt", "run.json"]


def test_a_kill_between_the_two_files_of_a_checkpoint_leaves_the_older_pair(
    request_for: RequestFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place"
    with pytest.raises(Stopped):
        execute(request_for(), checkpoints=place, should_stop=stop_after(2))

    def power_cut(*_arguments: object) -> None:
        raise MemoryError

    with monkeypatch.context() as patch:
        patch.setattr(resume, "write_whole", power_cut)
        failed = execute(request_for(), checkpoints=place, should_stop=stop_after(1))
    assert failed.status == "failed"
    assert {"learner-2.ckpt", "learner-3.ckpt"} <= {file.name for file in place.iterdir()}
    continued = execute(request_for(), checkpoints=place)
    assert continued.num_resumes == 1
    assert without_times(continued) == without_times(execute(request_for()))


def test_a_commit_in_between_leaves_a_checkpoint_as_good_as_it_was(
    request_for: RequestFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "place"
    with pytest.raises(Stopped):
        execute(request_for(), checkpoints=place, should_stop=stop_after(5))
    monkeypatch.setattr(machine, "_git", lambda *_: "f" * 40)
    machine.commit.cache_clear()
    continued = execute(request_for(), checkpoints=place)
    machine.commit.cache_clear()
    assert continued.num_resumes == 1


def test_a_run_continued_on_another_processor_is_a_run_of_neither(
    request_for: RequestFor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def part(cpu: str, asks: int) -> Record | None:
        here = {"cpu": "AMD EPYC", "kernels": cpu}  # one brand name covers several kinds
        monkeypatch.setattr("recollect.experiments.running.execute.machine", lambda: here)
        try:
            place = tmp_path / "place"
            return execute(request_for(), checkpoints=place, should_stop=stop_after(asks))
        except Stopped:
            return None

    assert [part("A", 5), part("A", 3), part("B", 3)] == [None] * 3
    record = part("B", NUM_ASKS)
    assert record is not None
    assert record.machine["cpu"] == "AMD EPYC, A (1 thread), then AMD EPYC, B (1 thread)"


def test_a_run_that_raises_is_recorded_with_its_traceback(request_for: RequestFor) -> None:
    record = execute(request_for("diverging"))
    assert record.status == "failed"
    assert record.error is not None
    assert "NonFiniteError" in record.error
    assert "Traceback" in record.error
    assert record.num_steps < NUM_STEPS


def test_a_store_that_cannot_be_written_is_no_failure_of_the_run(
    request_for: RequestFor, tmp_path: Path
) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreError, match="is not a folder"):
        execute(request_for(), checkpoints=tmp_path / "file" / "place", checkpoint_share=1e6)


def test_progress_says_where_the_run_is(request_for: RequestFor) -> None:
    told: list[Progress] = []
    execute(request_for(), on_progress=told.append)
    assert (told[0].segment, told[0].num_segments) == (1, 5)
    assert (told[0].seen, told[0].num_examples) == (10, 200)
    assert told[0].examples_per_second > 0


def test_times_add_up(request_for: RequestFor) -> None:
    record = execute(request_for())
    assert 0 < record.learn_seconds <= record.wall_seconds
    assert record.step_seconds == tuple(sorted(record.step_seconds))
    assert record.step_seconds[0] > 0
    assert record.threads == 1
    assert record.peak_bytes > 50_000_000


def test_a_run_below_a_bar_is_pruned_there_and_is_the_whole_run_up_to_there(
    request_for: RequestFor, tmp_path: Path
) -> None:
    whole = execute(request_for())
    place = whole.curve[2]
    recent = recent_accuracy([(point.seen, point.accuracy) for point in whole.curve[:3]])
    barred = dataclasses.replace(request_for(), stop_below=((place.seen, recent + 0.01),))
    assert Request.from_json(barred.to_json()) == barred
    record = execute(barred, checkpoints=tmp_path)
    assert (record.status, record.spec_hash) == ("pruned", whole.spec_hash)
    assert f"after {place.seen} examples" in (record.error or "")
    assert record.curve == whole.curve[:3]
    assert record.correct == whole.correct[: len(record.correct)] != whole.correct


def test_a_run_at_its_bars_or_between_them_is_whole(request_for: RequestFor) -> None:
    whole = execute(request_for())
    points = [(point.seen, point.accuracy) for point in whole.curve]
    at = tuple(
        (seen, recent_accuracy(points[: index + 1])) for index, (seen, _) in enumerate(points)
    )
    between = tuple((point.seen + 1, 1.0) for point in whole.curve)
    record = execute(dataclasses.replace(request_for(), stop_below=(*at, *between)))
    assert without_times(record) == without_times(whole)
