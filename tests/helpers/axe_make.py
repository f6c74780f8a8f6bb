"""axe-core over a page of a browser: its findings that stop people."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

_NAMED = os.environ.get("BIOBENCH_AXE")
AXE = Path(_NAMED) if _NAMED else Path(__file__).resolve().parents[2] / ".venv" / "axe-core" / "axe.min.js"
"""`make .venv/axe-core` fetches it with npm."""
_RUN = """
async excluded => {
  const found = await axe.run({exclude: excluded}, {resultTypes: ["violations"]});
  return found.violations.filter(v => ["serious", "critical"].includes(v.impact)).flatMap(
    v => v.nodes.map(n => `${v.impact} ${v.id}: ${n.target.join(" ")} ${n.html.slice(0, 160)}`));
}
"""


def barriers(page: Any, excluded: tuple[str, ...] = ()) -> list[str]:
    """The serious and critical findings of the page as it stands. excluded: selectors of nodes that are not asked."""
    page.evaluate(AXE.read_text(encoding="utf-8"))
    return list(page.evaluate(_RUN, [[selector] for selector in excluded]))
