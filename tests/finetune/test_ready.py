"""Logits of a foreign head as those of a task's outputs."""

import torch

from biobench.finetune.ready import outputs_of

CHANCES = torch.tensor([[0.5, 0.2, 0.3]])


def test_chances_of_labels_that_stand_for_one_output_are_added_up():
    summed = outputs_of(CHANCES.log(), [[1, 2], [0], []], summed=True).softmax(dim=1)
    torch.testing.assert_close(summed, torch.tensor([[0.5, 0.5, 0.0]]))


def test_a_dropped_label_leaves_its_chance_to_the_others():
    rest = outputs_of(CHANCES.log(), [[0], [2]], summed=True).softmax(dim=1)
    torch.testing.assert_close(rest, torch.tensor([[0.625, 0.375]]))


def test_of_labels_that_are_decided_one_by_one_the_likeliest_stands():
    best = outputs_of(CHANCES.logit(), [[1, 2], []], summed=False).sigmoid()
    torch.testing.assert_close(best, torch.tensor([[0.3, 0.0]]))
