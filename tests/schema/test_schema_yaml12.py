"""YAML 1.2 core scalars, lines of everything, and the refusal of whatever is not plain data."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from biobench.errors import SpecError
from biobench.schema.yaml12 import Scalar, parse, plain, resolve_scalar

# YAML 1.2.2, 10.3.2: what is a number, a truth value or nothing ...
VALUES: dict[str, Any] = {
    "5e-5": 5e-5,
    "1e3": 1000.0,
    "1.": 1.0,
    ".5": 0.5,
    "-0.0": -0.0,
    "+12": 12,
    "007": 7,
    "0o17": 15,
    "0x1F": 31,
    "true": True,
    "False": False,
    "~": None,
    "null": None,
    "NULL": None,
    "+.inf": math.inf,
    "-.INF": -math.inf,
}
# ... and what YAML 1.1 would take for one and is text.
TEXTS = "no Yes on off y N 1_000 12:30:45 2024-01-31 0b11 1e e5 C34.1 tRUE nil 1.2.3 - 0x"


@pytest.mark.parametrize(("text", "value"), VALUES.items(), ids=VALUES.keys())
def test_values_of_the_core_schema(text, value):
    found = resolve_scalar(text)
    assert isinstance(found, Scalar)
    assert found == Scalar(value, text)
    assert type(found.value) is type(value)


@pytest.mark.parametrize("text", TEXTS.split())
def test_texts_of_the_core_schema(text):
    assert resolve_scalar(text) == text


def test_a_number_too_long_for_python_is_no_crash():
    assert plain(parse("a: " + "9" * 5000).data) == {"a": math.inf}


def test_not_a_number_is_one():
    found = resolve_scalar(".nan")
    assert isinstance(found, Scalar)
    assert isinstance(found.value, float)
    assert math.isnan(found.value)


@pytest.mark.parametrize("text", ["5e-5", "no", "null", "0042", "1.10"])
def test_quotes_make_text(text):
    assert parse(f"a: '{text}'").data == {"a": text}
    assert parse(f'a: "{text}"').data == {"a": text}


def test_codes_keep_their_written_form():
    values = parse("codes: [0042, 1.10, 1e3, null, true, no, C34.1]").data["codes"]
    written = [value.text if isinstance(value, Scalar) else value for value in values]
    assert written == ["0042", "1.10", "1e3", "null", "true", "no", "C34.1"]


@given(st.integers(), st.floats(allow_nan=False))
def test_numbers_round_trip(whole, real):
    written = repr(real).replace("inf", ".inf")
    data = plain(parse(f"a: {whole}\nb: {written}").data)
    assert data == {"a": whole, "b": real}
    assert type(data["a"]) is int
    assert type(data["b"]) is float


_WORD = st.text(
    # at U+2028 and U+2029 (Zl, Zp) the parser ends a line, as at a control sign
    st.characters(codec="utf-8", exclude_categories=("Cs", "Cc", "Co", "Cn", "Zl", "Zp")),
    min_size=1,
    max_size=12,
)


@given(st.lists(_WORD, min_size=1, max_size=8, unique=True))
def test_every_key_has_its_line(keys):
    import json

    located = parse("".join(f"{json.dumps(k, ensure_ascii=False)}: 1\n" for k in keys))
    assert [located.line_of((k,)) for k in keys] == list(range(1, len(keys) + 1))


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("a: {b: 1,\n b: 2}\n", 2, "duplicate key 'b'"),
        ("a: &x 1\nb: *x\n", 1, "anchor 'x'"),
        ("a: !!python/object:os.system ls\n", 1, "is not allowed"),
        ("a: !!str 1\n", 1, "tag"),
        ("? [1, 2]\n: 3\n", 1, "a key must be a single text"),
        ("a: 'open\n", 2, "not valid YAML"),
        ("a: 1\n---\nb: 2\n", 2, "not valid YAML"),
        ("a: \x07\n", 1, "is not allowed in YAML"),
        ("[" * 900 + "]" * 900, 1, "nested too deeply"),
        ("# only a comment\n", None, "the file is empty"),
    ],
)
def test_refused_with_line(text, line, words):
    with pytest.raises(SpecError) as caught:
        parse(text, "spec.yaml")
    assert words in caught.value.what
    assert caught.value.line == line
    assert "\n" not in str(caught.value)
    assert caught.value.hint


@given(st.text(max_size=60))
def test_any_text_is_parsed_or_refused_in_one_line(text):
    refused: SpecError | None = None
    try:
        parse(text, "spec.yaml")
    except SpecError as error:
        refused = error
    if refused is not None:
        assert "\n" not in str(refused)
        assert refused.hint
