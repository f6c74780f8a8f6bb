"""The JSON Schema of a task spec, with each reader's own options in it."""

from __future__ import annotations

from typing import Any

import biobench.kinds  # noqa: F401  (the kinds of task that a spec may name register themselves)
from biobench.data.readers import formats
from biobench.schema.strict import json_schema
from biobench.schema.task import TaskSpec


def task_json_schema() -> dict[str, Any]:
    """Draft 2020-12 schema for editor completion: TaskSpec, with `reader` as a choice by `format`."""
    schema = json_schema(TaskSpec)
    definitions = schema["$defs"]
    names = []
    for reader in formats().values():
        options = reader.options.model_json_schema(ref_template="#/$defs/{model}")
        definitions.update(options.pop("$defs", {}))
        definitions[reader.options.__name__] = options
        names.append(reader.options.__name__)
    definitions["ReaderSpec"] = {
        "description": "The native format and its reader's options.",
        "anyOf": [{"$ref": f"#/$defs/{name}"} for name in names],
    }
    return schema
