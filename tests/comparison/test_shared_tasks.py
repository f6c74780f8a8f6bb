"""Where no model has a whole suite: the tasks that most models share."""

from __future__ import annotations

from biobench.comparison.standing import shared_tasks
from biobench.report.row import Row


def rows(model: str, tasks: str, source: str = "run", partial: bool = False) -> list[Row]:
    return [Row(model, t, "macro_f1", 0.5, None, None, None, 1, source, partial=partial) for t in tasks]  # type: ignore[arg-type]


def test_the_set_with_the_most_scores_wins() -> None:
    lines = [*rows("a", "pqrs"), *rows("b", "pqr"), *rows("c", "pqt"), *rows("d", "z")]
    assert shared_tasks(lines) == ("p", "q"), "six scores either way: more models"
    assert shared_tasks([*lines, *rows("e", "pqrs")]) == ("p", "q", "r")


def test_one_line_or_printed_ones_share_nothing() -> None:
    assert shared_tasks(rows("a", "pq")) == ()
    assert shared_tasks([*rows("a", "p"), *rows("b", "p", "published"), *rows("c", "p", partial=True)]) == ()
    assert shared_tasks([*rows("a", "p"), *rows("b", "q")]) == ()


def test_tasks_outside_the_suites_are_shared_only_where_no_other_is() -> None:
    lines = [*rows("a", "pqz"), *rows("b", "pqz")]
    assert shared_tasks(lines, {"q", "z"}) == ("p",)
    assert shared_tasks(lines, {"p", "q", "z"}) == ("p", "q", "z")
    assert shared_tasks([*rows("a", "pz"), *rows("b", "z")], {"z"}) == ("z",)
