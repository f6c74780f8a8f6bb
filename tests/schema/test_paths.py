"""Every field that names a file stays below the folder that it starts from."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Annotated, Any, get_args

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from biobench.comparison.plan import DeclaredPlan
from biobench.data.readers.base import REGISTRY
from biobench.schema.record import RunRecord
from biobench.schema.source import HubSource, Original, Source, SplitIds, UrlSource
from biobench.schema.suite import Member, SuiteSpec
from biobench.schema.task import TaskSpec
from biobench.store.statements import Statement
from biobench.submission.pack import Manifest
from biobench.workflows.study import Benchmark, Study
from trainer.recipe.corpus import CorpusSource, Exclusion
from trainer.recipe.spec import Recipe

BELOW: list[tuple[type[BaseModel], str, str]] = [
    (SplitIds, "ids_file", "ids.json"),
    (Source, "folder", "corpus/release"),
    (Source, "files", "texts/*.txt"),
    (Original, "folder", "corpus"),
    (Original, "files", "train.tsv"),
    (UrlSource, "subfolder", "inside"),
    (UrlSource, "members", "a/b.tsv"),
    (UrlSource, "to", "a"),
    (HubSource, "path", "data"),
    (Member, "task", "own/task.yaml"),
    (Benchmark, "tasks", "task.yaml"),
    (Benchmark, "secondary", "task.yaml"),
    (Study, "base", "recipe.yaml"),
    (CorpusSource, "path", "notes/*.jsonl"),
    (Exclusion, "files", "held_out.txt"),
]
"""Model, field, and a value that it takes."""
OWN = {"CorpusSpec.root", "CorpusSpec.cache", "Reuse.run", "Base.model", "Base.tokenizer"}
"""Folders of the user's machine, which a recipe may name wherever they lie."""
COMPARED = {"RunRecord.predictions", "SubmittedFile.path", "Statement.manifest"}
"""Held against what they must be, never opened."""
PATH_NAMES = re.compile(
    r"(^|_)(files?|folder|subfolder|paths?|root|cache|members|to|run|predictions|manifest|dir)$"
)
ESCAPES = ["../x", "a/../../x", "/etc/passwd", "~/x", "C:x", "\\\\host\\x", "a\0b", "a\nb", "..\\x"]


def models_in(annotation: Any) -> list[type[BaseModel]]:
    """The models that stand in an annotation."""
    if isinstance(annotation, type):
        return [annotation] if issubclass(annotation, BaseModel) else []
    return [model for part in get_args(annotation) for model in models_in(part)]


def has_text(annotation: Any) -> bool:
    """Whether it takes a text somewhere."""
    return annotation is str or any(has_text(part) for part in get_args(annotation))


def text_fields(model: type[BaseModel], above: tuple[str, ...] = ()) -> Iterator[str]:
    """`Model.field` of every field that takes text, of the models inside too."""
    for name, field in model.model_fields.items():
        if has_text(field.annotation):
            yield f"{model.__name__}.{name}"
        for inner in models_in(field.annotation):
            if inner.__name__ not in above:
                yield from text_fields(inner, (*above, inner.__name__))


def test_every_field_that_sounds_like_a_path_is_listed_here() -> None:
    roots = [TaskSpec, Recipe, RunRecord, DeclaredPlan, SuiteSpec, Study, Manifest, Statement]
    options = [reader.options for reader in REGISTRY.values()]
    listed = {f"{model.__name__}.{name}" for model, name, _ in BELOW} | OWN | COMPARED
    found = {
        field
        for model in (*roots, *options)
        for field in text_fields(model)
        if PATH_NAMES.search(field.split(".")[1])
    }
    assert found - listed == set()
    assert len(found) > 15


@pytest.mark.parametrize(("model", "name", "good"), BELOW)
def test_no_path_leaves_its_folder(model: type[BaseModel], name: str, good: str) -> None:
    field = model.model_fields[name]
    whole: Any = Annotated[(field.annotation, *(field.metadata or [None]))]
    adapter: TypeAdapter[Any] = TypeAdapter(whole)

    def takes(value: str) -> bool:
        for shape in (value, [value], (value,), {"train": value}, {"train": [value]}):
            try:
                adapter.validate_python(shape, strict=True)
            except ValidationError:
                continue
            return True
        return False

    assert takes(good)
    assert [escape for escape in ESCAPES if takes(escape)] == []
