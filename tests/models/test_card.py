"""The licence of a checkpoint, as its model card names it."""

from __future__ import annotations

import pytest

from biobench.models.loading import CARD, find_checkpoint, licence_of
from tests.helpers.checkpoints import make_checkpoint


@pytest.mark.parametrize(
    ("card", "licence"),
    [
        ("---\nlicense: apache-2.0\nlanguage: fr\n---\n# A model\n", "apache-2.0"),
        ('\ufeff---\r\ntags:\r\n- x\r\nlicense: "mit" # as the code\r\n---\r\n', "mit"),
        ("---\nlicense: other\nlicense_name: mine\n---\n", "other"),
        ("# A model\n\nlicense: mit\n", None),
        ("---\nlanguage: fr\n---\nlicense: mit\n", None),
        ("---\nlicense: mit\n", None),
        ("---\nlicense: [mit, apache-2.0]\n---\n", None),
        ("---\nlicense: mit\nlicense: gpl-3.0\n---\n", None),
        ("---\nmodel:\n  license: mit\n---\n", None),
        ("---\nlicense: <script>alert(1)</script>\n---\n", None),
        ("---\nlicense: mit](javascript:alert(1))\n---\n", None),
        (f"---\nlicense: {'x' * 65}\n---\n", None),
        (f"---\n{'a' * 70_000}\nlicense: mit\n---\n", None),
        ("---\nlicense: \x1b[31mmit\n---\n", None),
        ("", None),
    ],
)
def test_only_a_plain_identifier_of_the_front_matter_is_a_licence(tmp_path, card, licence):
    (tmp_path / CARD).write_bytes(card.encode())
    assert licence_of(tmp_path) == licence


def test_the_licence_is_in_the_record_and_changes_no_identity(tmp_path):
    folder = make_checkpoint("bert", tmp_path / "some-encoder")
    bare = find_checkpoint(str(folder))
    assert bare.identity(10).licence is None
    (folder / CARD).write_text("---\nlicense: cc-by-4.0\n---\n")
    carded = find_checkpoint(str(folder))
    assert carded.identity(10).licence == "cc-by-4.0"
    assert carded.hash == bare.hash
