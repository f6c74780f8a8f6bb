"""Labels of a head that was fine-tuned elsewhere, matched with the outputs of a task."""

import pytest

from biobench.errors import UsageError
from biobench.models.stored_head import StoredHead

TAGS = ("O", "B-Disease", "I-Disease", "B-Drug", "I-Drug")


@pytest.mark.parametrize(
    ("label", "names", "output"),
    [
        ("B-Disease", {}, "B-Disease"),
        ("I-DISEASE", {}, "I-Disease"),
        ("S-disease", {}, "B-Disease"),
        ("L-Disease", {}, "I-Disease"),
        ("Disease", {}, "I-Disease"),
        ("B-PROBLEM", {}, None),
        ("B-PROBLEM", {"PROBLEM": "Disease"}, "B-Disease"),
        ("E-PROBLEM", {"PROBLEM": "Disease"}, "I-Disease"),
        ("B", {"B": "Disease"}, "B-Disease"),
        ("LABEL_1", {"LABEL_1": "B-Drug"}, "B-Drug"),
        ("o", {}, "O"),
    ],
)
def test_a_tag_stands_for_the_tag_of_its_name_then_of_the_map(label, names, output):
    assert StoredHead("token", (label,)).matched(TAGS, names).get(label) == output


def test_labels_of_texts_have_no_prefix():
    head = StoredHead("sequence", ("B-cell", "cell"))
    assert head.matched(("b-cell", "other")) == {"B-cell": "b-cell"}


def test_a_name_that_two_outputs_share_but_for_case_is_not_guessed():
    assert StoredHead("sequence", ("gene",)).matched(("Gene", "GENE")) == {}


def test_a_map_against_an_equal_name_is_refused():
    with pytest.raises(UsageError, match="gives 'B-Drug' to 'Disease', but the task has 'B-Drug'"):
        StoredHead("token", ("B-Drug",)).matched(TAGS, {"Drug": "Disease"})
