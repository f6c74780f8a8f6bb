"""Which runs of two models meet: the whole and shipped ones first, and never one of several unasked."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from biobench.comparison.compare import compare
from biobench.errors import UsageError
from biobench.submission.verify import within_window
from tests.helpers.compare_make import save_runs
from tests.helpers.report_make import save_run


def test_of_two_changed_protocols_one_must_be_named(tmp_path):
    for model, quality in (("a", 0.9), ("b", 0.5)):
        for epochs in (1, 2):
            changed = f"training.epochs={epochs}"
            save_runs(tmp_path, model, ("gad",), quality, spec=f"spec {epochs}", overrides=(changed,))
    with pytest.raises(UsageError, match="gad: runs under 2 conditions are stored") as caught:
        compare("a", "b", results_dir=tmp_path)
    assert caught.value.hint == "name one: training.epochs=1, training.epochs=2"
    assert compare(*(f"{m} [training.epochs=2]" for m in "ab"), results_dir=tmp_path).tasks == ("gad",)


def test_runs_of_the_shipped_spec_go_before_those_of_an_older_one(tmp_path):
    save_runs(tmp_path, "a", ("gad",), 0.9)
    save_runs(tmp_path, "b", ("gad",), 0.4)
    save_runs(tmp_path, "a", ("gad",), 0.2, spec="f" * 64)
    save_runs(tmp_path, "b", ("gad",), 0.7, spec="f" * 64)
    (line,) = compare("a", "b", results_dir=tmp_path).pairs[0].tasks
    assert line.first > 0.8 > 0.5 > line.second


def test_of_two_sets_of_weights_by_one_name_one_must_be_named(tmp_path):
    for digit, score in (("1", 0.5), ("2", 0.9)):
        save_run(tmp_path, "a", "gad", 42, score, weights=digit * 64)
    save_run(tmp_path, "b", "gad", 42, 0.7)
    with pytest.raises(UsageError, match="gad: 'a' has runs of different weights") as caught:
        compare("a", "b", results_dir=tmp_path)
    assert caught.value.hint == "name one: 'a [weights 11111111]', 'a [weights 22222222]'"
    (line,) = compare("a [weights 22222222]", "b", results_dir=tmp_path).pairs[0].tasks
    assert line.difference == pytest.approx(0.2)


def test_only_needle_examples_of_whole_tokens_are_cut_by_the_window():
    def document(length: int | None, fit: str = "tokens"):
        return SimpleNamespace(plan=None if length is None else SimpleNamespace(length=length, fit=fit))

    documents = [document(None), document(512), document(513), document(511), document(9999, "words")]
    assert within_window(documents, 512) == [documents[i] for i in (0, 1, 3, 4)]
