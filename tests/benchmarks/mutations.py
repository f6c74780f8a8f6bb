"""How many planted faults do the tests find? A fixed random sample, each run against the tests of
its line.

    python -m tests.benchmarks.mutations map COVERAGE          runs the tests with a coverage map
    (pytest-cov is needed) python -m tests.benchmarks.mutations sample SAMPLE         draws the
    sample: 120 mutations, seed 36 python -m tests.benchmarks.mutations run SAMPLE COVERAGE RESULT
    plants one after the other; resumes

The sample holds source lines, not line numbers, so that it can be planted again after the code has
moved. Run it in a clone of its own: files are changed while it runs. A mutation is `found`,
`survived`, `uncovered` (no test runs its line) or `gone` (its line stands no more in the code).
"""

from __future__ import annotations

import ast
import json
import os
import random
import re
import sqlite3
import subprocess
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROOMS = (
    *(
        "biobench/baselines",
        "biobench/comparison",
        "biobench/core",
        "biobench/data",
        "biobench/encode",
    ),
    *(
        "biobench/export",
        "biobench/finetune",
        "biobench/kinds",
        "biobench/models",
        "biobench/report",
        "biobench/runs",
    ),
    *(
        "biobench/schema",
        "biobench/score",
        "biobench/stats",
        "biobench/store",
        "biobench/submission",
        "trainer",
    ),
)
MOST_TESTS, MOST_SECONDS = 25, 900
OPERATORS: dict[type[ast.AST], str] = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
}
OPERATORS |= {ast.NotEq: "==", ast.In: "not in", ast.Is: "is not"}
OPERATORS |= {ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*"}
"""What stands in an operator's place."""


@dataclass(frozen=True)
class Mutation:
    """One fault. line: the source line as it stands, stripped; before, after: the changed text
    within the statement.
    """

    file: str
    kind: str
    line: str
    before: str
    after: str


def mutations(path: Path) -> Iterator[Mutation]:
    """All faults that can be planted in one file, each on one line."""
    source = path.read_text(encoding="utf-8")
    lines = source.splitlines()
    name = path.relative_to(ROOT).as_posix()

    def of(node: ast.AST) -> str:
        return ast.get_source_segment(source, node) or ""

    def one(kind: str, node: ast.AST, after: str) -> Iterator[Mutation]:
        before = of(node)
        if "\n" not in before and lines.count(lines[node.lineno - 1]) == 1:  # type: ignore[attr-defined]
            line = lines[node.lineno - 1].strip()  # type: ignore[attr-defined]
            if line.count(before) == 1:
                yield Mutation(name, kind, line, before, after)

    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in (inner for statement in function.body for inner in ast.walk(statement)):
            text = of(node)
            if (
                isinstance(node, ast.Compare)
                and len(node.ops) == 1
                and type(node.ops[0]) in OPERATORS
            ):
                operator = OPERATORS[type(node.ops[0])]
                yield from one(
                    "comparison", node, f"{of(node.left)} {operator} {of(node.comparators[0])}"
                )
            elif isinstance(node, ast.BinOp) and type(node.op) in OPERATORS:
                yield from one(
                    "arithmetic",
                    node,
                    f"{of(node.left)} {OPERATORS[type(node.op)]} {of(node.right)}",
                )
            elif isinstance(node, ast.Constant) and type(node.value) is int:
                yield from one("off by one", node, str(node.value + 1))
            elif isinstance(node, ast.BoolOp) and len(node.values) == 2:
                operator = "or" if isinstance(node.op, ast.And) else "and"
                yield from one("and, or", node, f" {operator} ".join(map(of, node.values)))
            elif (
                isinstance(node, ast.Call)
                and len(node.args) >= 2
                and not isinstance(node.args[0], ast.Starred)
            ):
                first, second = map(of, node.args[:2])
                if first != second and not isinstance(node.args[1], ast.Starred):
                    yield from one(
                        "swapped arguments",
                        node,
                        text.replace(f"{first}, {second}", f"{second}, {first}"),
                    )
            elif isinstance(node, ast.Expr | ast.AugAssign) and not isinstance(
                node.value, ast.Constant
            ):
                yield from one("dropped line", node, "pass")
            elif isinstance(node, ast.If):
                yield from one("negated condition", node.test, f"not ({of(node.test)})")


def draw(count: int, seed: int) -> list[Mutation]:
    """A random sample: a file by its number of possible faults, then kinds alike."""
    chance = random.Random(seed)
    sample: list[Mutation] = []
    by_file = {}
    for room in ROOMS:
        for path in sorted((ROOT / room).rglob("*.py")):
            if possible := [m for m in mutations(path) if m.after != m.before]:
                by_file[path] = possible
    while len(sample) < count:
        (path,) = chance.choices(list(by_file), [len(v) for v in by_file.values()])
        by_kind = defaultdict(list)
        for mutation in by_file[path]:
            by_kind[mutation.kind].append(mutation)
        mutation = chance.choice(by_kind[chance.choice(sorted(by_kind))])
        if mutation not in sample:
            sample.append(mutation)
    return sample


def place(mutation: Mutation) -> tuple[Path, int] | None:
    """File and line (from 1) where the mutation's line stands today; None where nowhere, or in
    several places.
    """

    def at(path: Path) -> list[tuple[Path, int]]:
        rows = path.read_text(encoding="utf-8").splitlines()
        return [
            (path, number) for number, row in enumerate(rows, 1) if row.strip() == mutation.line
        ]

    own = ROOT / mutation.file
    hits = at(own) if own.is_file() else []
    hits = hits or [
        hit for room in ROOMS for path in sorted((ROOT / room).rglob("*.py")) for hit in at(path)
    ]
    return hits[0] if len(hits) == 1 else None


def covering(database: Path, file: Path, line: int) -> list[str]:
    """Tests that run the line, as pytest names them."""
    with sqlite3.connect(database) as connection:
        rows = connection.execute(
            "SELECT context.context, line_bits.numbits FROM line_bits JOIN file ON file.id = "
            "line_bits.file_id"
            " JOIN context ON context.id = line_bits.context_id WHERE file.path LIKE ?",
            (f"%/{file.relative_to(ROOT).as_posix()}",),
        )
        tests = {
            c.rsplit("|", 1)[0]
            for c, bits in rows
            if c and line // 8 < len(bits) and bits[line // 8] >> line % 8 & 1
        }
    return sorted(tests)


def nearest(tests: list[str], file: Path, seconds: dict[str, float]) -> list[str]:
    """The tests to run, quickest first: those of the module's own folder before the others."""
    room = file.relative_to(ROOT).parts[-2]
    chosen = sorted(tests, key=lambda t: (f"/{room}/" not in t, seconds.get(t, 1.0)))[:MOST_TESTS]
    return sorted(chosen, key=lambda t: seconds.get(t, 1.0))


def outcome(mutation: Mutation, database: Path, seconds: dict[str, float]) -> tuple[str, str]:
    """What became of one planted fault, and the test that found it."""
    where = place(mutation)
    if where is None:
        return "gone", ""
    path, number = where
    tests = [t for t in covering(database, path, number) if (ROOT / t.split("::")[0]).is_file()]
    if not tests:
        return "uncovered", ""
    fresh = os.environ | {
        "PYTHONDONTWRITEBYTECODE": "1"
    }  # a mutated file's bytecode must not outlive it
    kept = path.read_text(encoding="utf-8")
    rows = kept.splitlines(keepends=True)
    rows[number - 1] = rows[number - 1].replace(mutation.before, mutation.after)
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-x",
        "-q",
        "-p",
        "no:cacheprovider",
        *nearest(tests, path, seconds),
    ]
    try:
        path.write_text("".join(rows), encoding="utf-8")
        run = subprocess.run(
            command, cwd=ROOT, capture_output=True, text=True, timeout=MOST_SECONDS, env=fresh
        )
    except subprocess.TimeoutExpired:
        return "found", "time limit"
    finally:
        path.write_text(kept, encoding="utf-8")
    failed = re.search(r"^(?:FAILED|ERROR) (\S+)", run.stdout, re.MULTILINE)
    if run.returncode not in (0, 1) and not failed:
        raise SystemExit(f"pytest could not run the tests of {mutation}:\n{run.stdout}{run.stderr}")
    return ("survived", "") if run.returncode == 0 else ("found", failed[1] if failed else "")


def main(command: str, *paths: str) -> None:
    """The command line of the module's docstring."""
    if command == "sample":
        rows = [asdict(m) for m in draw(120, 36)]
        Path(paths[0]).write_text(json.dumps(rows, indent=1), encoding="utf-8")
        print(Counter(row["kind"] for row in rows))
    elif command == "map":
        options = [
            "--cov=biobench",
            "--cov=trainer",
            "--cov-context=test",
            "--cov-report=",
            "--durations=0",
            "-q",
        ]
        settings = Path(paths[0]).with_suffix(".ini")
        settings.write_text(f"[run]\ndata_file = {Path(paths[0]).absolute()}\n", encoding="utf-8")
        test = [
            sys.executable,
            "-m",
            "pytest",
            *options,
            f"--cov-config={settings}",
            "-m",
            "not slow and not real",
        ]
        run = subprocess.run(
            [*test, "-n", "2"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        Path(paths[0]).with_suffix(".log").write_text(run.stdout, encoding="utf-8")
    elif command == "run":
        sample, database, result = (Path(path) for path in paths)
        log = database.with_suffix(".log").read_text(encoding="utf-8")
        seconds = {t: float(s) for s, t in re.findall(r"^([\d.]+)s call +(\S+)", log, re.MULTILINE)}
        done = json.loads(result.read_text(encoding="utf-8")) if result.is_file() else []
        for row in json.loads(sample.read_text(encoding="utf-8"))[len(done) :]:
            state, by = outcome(Mutation(**row), database, seconds)
            done.append({**row, "outcome": state, "by": by})
            result.write_text(json.dumps(done, indent=1), encoding="utf-8")
            print(len(done), state, row["file"], row["kind"], row["line"][:60], by[:80], flush=True)
        print(Counter(row["outcome"] for row in done))
    else:
        raise SystemExit(__doc__)


if __name__ == "__main__":
    main(*sys.argv[1:])
