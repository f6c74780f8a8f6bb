"""A plan counts what is trained, not what is taken over from another run."""

from __future__ import annotations

from trainer import api


def test_phases_taken_over_are_not_counted(small: list[str]) -> None:
    whole = api.plan("toy_detour", overrides=small)
    names = [p.name for p in whole.phases]
    part = api.plan("toy_detour", overrides=[*small, f"reuse={{run: runs/donor, through: {names[0]}}}"])
    assert part.phases == whole.phases[1:]
    given = part.as_dict()
    assert given["reused"] == names[:1]
    assert given["reused_from"] == "runs/donor"
    assert given["steps"] == whole.phases[1].steps
    assert given["tokens"] == whole.phases[1].tokens
    assert given["flops"] == whole.phases[1].flops
    assert f"taken over from runs/donor, not trained again: {names[0]}" in "\n".join(part.lines())
    assert whole.as_dict()["reused"] == []
    assert "taken over" not in "\n".join(whole.lines())
