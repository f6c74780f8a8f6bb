"""What the documentation site adds to the written pages, made from the code and the specs at each
build.

One page a task, the references of the command line and of the typed models, the documents that
stand outside
`docs/`, and `llms.txt`. Read by mkdocs (`hooks:` in mkdocs.yml); nothing is fetched.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
ELSEWHERE = {
    "changelog.md": "CHANGELOG.md",
    "contributing.md": "CONTRIBUTING.md",
    "trainer.md": "trainer/README.md",
    "shipped.md": "results/README.md",
    "published.md": "results/published/README.md",
}
"""Page of the site -> the document of the repository that it shows."""
_LINK = re.compile(r"(?<!!)\[([^\]]*)\]\((?!https?:|#|mailto:)([^)#\s]+)(#[^)\s]*)?\)")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    for source, text in generated().items():
        files.append(File.generated(config, source, content=text))
    return files


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Fill the navigation's list of tasks."""
    for entry in config.nav or []:
        if "All tasks" in entry:
            entry["All tasks"] = [
                {"All tasks": "tasks/index.md"},
                *({i: f"tasks/{i}.md"} for i in sorted(specs())),
            ]
    return config


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Lead links to documents of the repository to their page here; a file without a page becomes
    its name.
    """
    here = ELSEWHERE.get(page.file.src_uri, f"docs/{page.file.src_uri}")
    folder, depth = (ROOT / here).parent, page.file.src_uri.count("/")
    pages = {(ROOT / document).resolve(): name for name, document in ELSEWHERE.items()}

    def lead(match: re.Match[str]) -> str:
        words, target, anchor = match[1], match[2], match[3] or ""
        if files.get_file_from_path(str(Path(page.file.src_uri).parent / target)) is not None:
            return match[0]
        file = (folder / target).resolve()
        if file in pages:
            return f"[{words}]({'../' * depth}{pages[file]}{anchor})"
        if file.is_relative_to(ROOT / "docs") and file.suffix == ".md":
            return f"[{words}]({'../' * depth}{file.relative_to(ROOT / 'docs').as_posix()}{anchor})"
        return f"`{file.relative_to(ROOT).as_posix()}`" if file.exists() else match[0]

    return _LINK.sub(lead, markdown)


def on_post_build(config: MkDocsConfig) -> None:
    """Write `llms.txt`: each page with its first sentence, for readers that are programs."""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", ""]
    for title, source in _pages(config.nav or []):
        text = generated().get(source) or (ROOT / "docs" / source).read_text(encoding="utf-8")
        lines.append(f"- [{title}]({source.removesuffix('.md')}.html): {first_sentence(text)}")
    (Path(config.site_dir) / "llms.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _pages(nav: list[Any]) -> Iterator[tuple[str, str]]:
    for entry in nav:
        for title, value in entry.items():
            if isinstance(value, str):
                yield title, value
            else:
                yield from _pages(value)


def first_sentence(text: str) -> str:
    """The first sentence of a page's first paragraph, without its markup."""
    body = re.sub(r"```.*?```|<!--.*?-->", "", text, flags=re.DOTALL)
    body = re.sub(r"^(#|\|).*$", "", body, flags=re.MULTILINE).strip()
    paragraph = " ".join(body.split("\n\n")[0].split())
    return re.split(r"(?<=[.:])\s", _LINK.sub(r"\1", paragraph).replace("`", ""))[0]


@cache
def generated() -> dict[str, str]:
    """All pages that are not written by hand: path on the site -> Markdown."""
    from biobench.data.catalog import task_json_schema
    from biobench.schema.record import RunRecord
    from biobench.schema.strict import json_schema
    from trainer.api import recipe_schema

    pages = {
        name: (ROOT / document).read_text(encoding="utf-8") for name, document in ELSEWHERE.items()
    }
    pages |= {f"tasks/{name}.md": task_page(name) for name in specs()}
    return pages | {
        "tasks/index.md": task_index(),
        "reference/cli.md": command_line(),
        "reference/python.md": python_page(),
        "reference/task-spec.md": model_page(
            "Task spec", "biobench tasks schema", task_json_schema()
        ),
        "reference/run-record.md": model_page("Run record", None, json_schema(RunRecord)),
        "reference/recipe.md": model_page(
            "Pretraining recipe", "biobench pretrain schema", recipe_schema()
        ),
    }


@cache
def specs() -> Mapping[str, Any]:
    """The shipped tasks by id."""
    from biobench.data.catalog import list_tasks

    return {task.spec.id: task for task in list_tasks()}


def task_index() -> str:
    """All tasks in one table."""
    rows = [
        f"| [{name}]({name}.md) | {cell(task.spec.name)} | {task.spec.language} | "
        f"{task.spec.type} | "
        f"{task.spec.metric.paper} | {task.spec.access} |"
        for name, task in sorted(specs().items(), key=lambda item: (item[1].spec.language, item[0]))
    ]
    head = [
        "| id | name | language | type | published average | access |",
        "|---|---|---|---|---|---|",
    ]
    words = (
        "Every task is one YAML file. The headline score is macro F1 over the labels with gold in "
        "the test split; the "
        "published average is the one that published values are compared with."
    )
    return "\n".join(["# Tasks", "", words, "", *head, *rows, ""])


def task_page(name: str) -> str:
    """One task, from its spec and the published scores."""
    spec = specs()[name].spec
    labels = spec.labels if isinstance(spec.labels, list) else None
    rule = (
        ""
        if labels
        else ", ".join(f"{k}: {v}" for k, v in spec.labels.model_dump(exclude_none=True).items())
    )
    facts = {
        "language": spec.language,
        "type": f"{spec.type}, one example a {spec.unit}",
        "labels": f"{len(labels)}: {', '.join(labels)}" if labels else f"by a rule ({rule})",
        "corpus": spec.corpus_id,
        "access": spec.access,
        "licence": spec.licence,
        "homepage": f"<{spec.homepage}>" if spec.homepage.startswith("http") else spec.homepage,
        "version of the spec": str(spec.version),
        "seeds": spec.seeds,
        "scores": f"headline {spec.metric.primary}; checkpoint chosen by {spec.selection}; "
        f"published values are {spec.metric.paper}",
        "gate": spec.gate.expect,
    }
    if spec.variant_of:
        facts["variant of"] = f"[{spec.variant_of}]({spec.variant_of}.md)"
    lines = [f"# {spec.name}", "", f"`{name}`. {cell(spec.citation)}", "", "| | |", "|---|---|"]
    lines += [f"| {key} | {cell(value)} |" for key, value in facts.items()]
    if spec.notes:
        lines += ["", "## What to know", "", *(f"- {note}" for note in spec.notes)]
    deviations = getattr(spec, "deviations", None)
    if deviations:
        lines += [
            "",
            "## Deviations from the compared protocol",
            "",
            *(f"- {_words(item)}" for item in deviations),
        ]
    lines += ["", "## Recipe", "", "| field | value |", "|---|---|"]
    for part in ("protocol", "training", "head"):
        for key, value in getattr(spec, part).model_dump(exclude_none=True).items():
            lines.append(f"| `{part}.{key}` | {cell(value)} |")
    lines += ["", "## Sources", ""]
    for source in spec.all_sources:
        files = ", ".join(f"`{file}`" for file in _files(source.files))
        urls = (
            source.url
            if isinstance(source.url, (list, tuple))
            else [source.url]
            if source.url
            else []
        )
        way = ", ".join(f"<{url.url}>" for url in urls)
        way = way or (f"hub: {source.hub.repo}" if source.hub else "laid by hand")
        reader = spec.reader_of(source).format
        lines.append(
            f"- **{source.id}**: folder `{source.folder}`, {files}, read as `{reader}`; {way}"
        )
    if spec.counts:
        keys = list(dict.fromkeys(key for counts in spec.counts.values() for key in counts))
        lines += [
            "",
            "## Counts",
            "",
            "| | " + " | ".join(spec.counts) + " |",
            "|---" * (len(spec.counts) + 1) + "|",
        ]
        lines += [
            f"| {cell(key)} | "
            + " | ".join(str(counts.get(key, "")) for counts in spec.counts.values())
            + " |"
            for key in keys
        ]
    if spec.findings:
        lines += [
            "",
            "## Known findings in the data",
            "",
            *(f"- {key}: {n}" for key, n in spec.findings.items()),
        ]
    return "\n".join([*lines, *published(spec), ""])


def published(spec: Any) -> list[str]:
    """The published values that belong to a task, with our reading of their average."""
    from biobench.reporting.literature.published import load_published

    values = [v for v in load_published() if v.task == (spec.published_as or "")]
    if not values:
        return []
    rows = [
        f"| {cell(v.model)} | {cell(v.size)} | "
        f"{100 * v.value:.{max(0, round(-2 - _log10(v.step)))}f} | {v.claimed} | "
        f"{v.likely} | {cell(v.source)} |"
        for v in sorted(values, key=lambda v: -v.value)
    ]
    head = [
        "| model | size | percent | average as captioned | average as read | source |",
        "|---" * 6 + "|",
    ]
    return ["", "## Published results", "", *head, *rows]


def _log10(step: float) -> int:
    return round(math.log10(step))


def _words(item: Any) -> str:
    if isinstance(item, str):
        return item
    return ", ".join(f"{key}: {value}" for key, value in item.model_dump(exclude_none=True).items())


def _files(files: Any) -> list[str]:
    values = files.values() if isinstance(files, Mapping) else [files]
    return [part for value in values for part in ([value] if isinstance(value, str) else value)]


def command_line() -> str:
    """Every command with its help, arguments and options, from the application itself."""
    from typer.main import get_command

    from biobench.cli.main import app

    root: Any = get_command(app)
    lines = [
        "# Command line",
        "",
        "Exit status: 0 done; 1 some run failed; 2 the input was wrong.",
        "",
    ]

    def show(command: Any, name: str, context: Any) -> None:
        here = type(context)(command, info_name=name, parent=context.parent)
        lines.extend([f"## {name}", "", plain(command.help or ""), ""])
        rows = [
            param.get_help_record(here)
            for param in command.params
            if not getattr(param, "hidden", False)
        ]
        rows = [row for row in rows if row]
        if rows:
            lines.extend(["| option or argument | what it does |", "|---|---|"])
            lines.extend(f"| `{cell(flag)}` | {cell(plain(words))} |" for flag, words in rows)
            lines.append("")

    context = root.make_context("biobench", [], resilient_parsing=True)
    for name, command in root.commands.items():
        inner = getattr(command, "commands", None)
        if inner is None:
            show(command, f"biobench {name}", context)
        for part, sub in (inner or {}).items():
            show(sub, f"biobench {name} {part}", context)
    return "\n".join(lines)


def python_page() -> str:
    """The public functions, read from their source."""
    import biobench

    lines = [
        "# Python",
        "",
        "The functions equal the commands; nothing heavy is imported before one is called.",
        "",
    ]
    for name, place in biobench._LAZY.items():
        lines += [
            f"## biobench.{name}",
            "",
            f"::: {'.'.join(place)}",
            "    options: {heading_level: 3, show_root_heading: false}",
            "",
        ]
    return "\n".join(lines)


def model_page(title: str, command: str | None, schema: dict[str, Any]) -> str:
    """A typed model's fields: type, default and meaning, group by group."""
    intro = f"JSON Schema: `{command}`." if command else "Written beside every run's predictions."
    lines = [f"# {title}", "", f"The fields of {title.lower()}s, from the typed model. {intro}", ""]
    groups = {schema.get("title", title): schema, **schema.get("$defs", {})}
    for name, group in groups.items():
        lines += [f"## {name}", "", " ".join(str(group.get("description", "")).split()), ""]
        fields = group.get("properties", {})
        if fields:
            lines += ["| field | type | default | meaning |", "|---|---|---|---|"]
            needed = group.get("required", [])
        for field, about in fields.items():
            default = (
                "required"
                if field in needed
                else f"`{cell(about['default'])}`"
                if "default" in about
                else ""
            )
            lines.append(
                f"| `{field}` | {cell(kind(about))} | {default} | "
                f"{cell(about.get('description', ''))} |"
            )
        lines.append("")
    return "\n".join(lines)


def kind(about: Mapping[str, Any]) -> str:
    """A field's type in words."""
    if "$ref" in about:
        return str(about["$ref"]).rpartition("/")[2]
    if "enum" in about:
        return ", ".join(map(str, about["enum"]))
    if "const" in about:
        return str(about["const"])
    for several in ("anyOf", "oneOf"):
        if several in about:
            return " or ".join(dict.fromkeys(kind(part) for part in about[several]))
    if about.get("type") == "array":
        return f"list of {kind(about.get('items', {}))}"
    if about.get("type") == "object" and isinstance(about.get("additionalProperties"), dict):
        return f"mapping to {kind(about['additionalProperties'])}"
    return str(about.get("type", "any"))


def plain(text: str) -> str:
    """Help without the terminal's markup, in one paragraph a paragraph."""
    return "\n\n".join(
        " ".join(part.split()) for part in re.sub(r"\[/?[a-z ]+\]", "", text).split("\n\n")
    )


def cell(value: object) -> str:
    """A value within a table's cell."""
    return (
        " ".join(str(value).split()).replace("|", "\\|").replace("<class", "").replace("*", "\\*")
    )
