"""The board in Chromium, one test for each thing that it must show at first sight."""

from __future__ import annotations

import json
import os
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import unquote

import pytest

from tests.helpers.app_make import PATHS, open_app, table_with
from tests.helpers.server_make import drawn, settle

SIDEBAR = "document.querySelector('[data-testid=stSidebar]')"
WAIT = 90_000
"""Milliseconds."""
TICKS = 33
"""Pixels of the column by which rows are picked."""
SORTED_BY = """
place => document.querySelector("[class*=st-key-bb_table] table").rows[0].cells[place]
  .innerText.startsWith("↑")
"""
TASK_IS = """task => [...document.querySelectorAll("[role=combobox]")].some(
  box => box.value === task)"""
SEARCHED = """words => document.querySelector("[aria-label='Search models']").value === words"""
# The framework asks for two files of its own below the path of a page, and finds them one level up.
# Its menu of pages on a phone stands as headers in a list. Neither is ours to change.
OURS = "404"
MENU = "[data-testid=stSidebarNavItems]"
AXE = Path(os.environ.get("BIOBENCH_AXE", Path(__file__).parents[2] / ".venv/axe-core/axe.min.js"))
STOP = """
() => {
  const look = control => {
    const label = control.parentElement;
    const frame = label.parentElement;
    const around = [...label.children, label, frame, frame.parentElement];
    return around.map(element => {
      const style = getComputedStyle(element);
      return [style.outline, style.boxShadow, style.borderColor, style.backgroundColor].join();
    }).join("|");
  };
  const isSeen = control => control.checkVisibility({opacityProperty: true});
  const control = document.activeElement, before = window.lastStop;
  const said = control.ariaLabel || control.outerHTML.slice(0, 160);
  const wrong = [];
  if (before && look(before.control) === before.look) wrong.push(`${before.said}: no focus seen`);
  window.stops = window.stops || new Set();
  if (before && before.control === control) return [];  // the next cell of a table
  if (control === document.body || window.stops.has(control)) return null;
  // a grid puts the canvas that it draws on behind what scrolls it
  const isOrdered = !before || before.control.compareDocumentPosition(control) & 4;
  if (!isOrdered && !control.matches(".dvn-scroller")) wrong.push(`${said}: out of order`);
  if (!isSeen(control)) wrong.push(`${said}: not seen`);
  window.lastStop = {control, said, look: look(control)};
  window.stops.add(control);
  return wrong;
}
"""
"""What is wrong with where the focus stands or stood; null where it is back at the beginning."""
NEVER_REACHED = """
() => [...document.querySelectorAll("main :is(a[href], button, input, summary)")]
  .filter(control => control.tabIndex >= 0 && !control.disabled && control.checkVisibility())
  .filter(control => !window.stops.has(control) && !(control.type === "radio" && !control.checked))
  .map(control => control.outerHTML.slice(0, 160))
"""
BARRIERS = """
async excluded => {
  const found = await axe.run({exclude: [[excluded]]}, {resultTypes: ["violations"]});
  return found.violations.filter(v => ["serious", "critical"].includes(v.impact)).flatMap(
    v => v.nodes.map(n => `${v.impact} ${v.id}: ${n.target.join(" ")} ${n.html.slice(0, 160)}`));
}
"""
"""The serious and critical findings of axe-core on the page as it stands."""


@contextmanager
def opened(browser, url, width=1280, scheme="light"):
    """A page that has been drawn; neither its scripts nor a name of a model may fail or run."""
    page = browser.new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.set_default_timeout(WAIT)
    wrong: list[str] = []
    page.on(
        "console", lambda message: wrong.append(message.text) if message.type == "error" else None
    )
    page.on("pageerror", lambda error: wrong.append(str(error)))
    page.goto(url)
    page.locator("[data-testid=stMain] h1").first.wait_for()
    settle(page)
    drawn(page)
    yield page
    assert page.locator("[data-testid=stException], [data-testid=stAlertContentError]").count() == 0
    assert [text for text in wrong if OURS not in text] == []
    assert page.evaluate("window.hacked") is None
    assert page.evaluate("document.documentElement.scrollWidth") <= width, (
        "the page scrolls sideways"
    )
    page.close()


def rows(page, place=0) -> list[list[str]]:
    """The rows of a table as its accessibility tree has them; a link by the name that it shows."""
    grid = page.locator("[class*=st-key-bb_table] [data-testid=stDataFrame] table").nth(place)
    grid.wait_for(state="attached")
    lines = grid.evaluate(
        "table => [...table.rows].map(row => [...row.cells].map(cell => cell.innerText))"
    )
    return [
        [unquote(cell.rpartition("#")[2]) if "?" in cell else cell for cell in line]
        for line in lines
    ]


def click_at(page, left, top) -> None:
    """A click so many pixels from the corner of the first table."""
    table = page.locator("[class*=st-key-bb_table] [data-testid=stDataFrame]").first
    box = table.bounding_box()
    page.mouse.move(box["x"] + left - 1, box["y"] + top)
    page.wait_for_timeout(300)
    page.mouse.click(box["x"] + left, box["y"] + top)


def above(page, text) -> bool:
    """Whether a text stands in the first 900 pixels."""
    box = page.get_by_text(text).first.bounding_box()
    return box is not None and box["y"] + box["height"] <= 900


def test_headline_on_the_shipped_store(browser, address):
    with opened(browser, address("shipped")) as page:
        for title in page.get_by_text("Where the runs here stand").all():
            title.click()
        page.get_by_text("above 0 of 8 published models").first.wait_for()
        said = page.locator("[data-testid=stMain]").inner_text()
        for sentence in (
            "Best published on 8 tasks: ModernCamemBERT-bio-large CLM detour (25B), mean 61.1",
            "Best published on 11 tasks: ModernBERT-bio-large CLM detour (50B), mean 78.7",
            "Best run here: all-MiniLM-L6-v2, 57.8 ±1.3 on quaero_medline.",
            "all-MiniLM-L6-v2 is 7.4 points below the best published there",
            "Best run here: all-MiniLM-L6-v2, 74.9 ±1.7 on gad and ncbi_disease.",
            "all-MiniLM-L6-v2 is 5.8 points below the best published there",
            "all-MiniLM-L6-v2 is above the best baseline on 2 of 2 tasks.",
        ):
            assert sentence in said
        assert above(page, "Best under 150 M parameters")
        assert above(page, "above 0 of 9 published models")
        head, *lines = rows(page, 1)
        ranks = {line[head.index("model")]: line[head.index("#")] for line in lines}
        assert ranks["ModernBERT-bio-large CLM detour (50B)"] == "1"
        assert ranks["causal-detour-1.1M [small protocol]"] == "", (
            "the small protocol has a ranking of its own"
        )


def test_headline_on_the_published_store_and_the_table_of_the_paper(browser, address):
    with opened(browser, address("published")) as page:
        assert above(page, "No runs here yet")
        (french, *fr), (_, *en) = rows(page, 0), rows(page, 1)
        assert (len(fr), len(en)) == (8, 9)
        assert len(set(french) & {"fracco_30", "cantemist", "diamed", "emea"}) == 4
        assert fr[0][french.index("mean") : french.index("mean") + 3] == ["61.1", "66.7", "58.3"]
        box = page.locator("[data-testid=stDataFrame]").nth(1).bounding_box()
        assert box["y"] + box["height"] < 960, "nineteen models at first sight"


def test_a_permalink_holds_search_and_sort_and_a_search_keeps_ranks(browser, address):
    with opened(
        browser, f"{address('published')}/?suite=English&search=bert-bio-base&sort=gad"
    ) as page:
        head, *lines = rows(page)
        assert lines[0][head.index("model")] == "ModernBERT-bio-base CLM detour (10B)", "by gad"
        assert sorted(line[head.index("#")] for line in lines) == ["2", "4", "5", "6"], (
            "ranks among everybody"
        )
        page.get_by_label("Search models").fill("pubmed")
        page.keyboard.press("Enter")
        page.wait_for_url("**search=pubmed**")
        settle(page)
        assert "sort=gad" in page.url
        page.wait_for_function(
            "document.querySelector('[class*=st-key-bb_table] table').rows.length === 2"
        )
        assert "PubMedBERT" in rows(page)[1]


def test_every_column_of_numbers_sorts_by_number(browser, address, stores, monkeypatch):
    app = open_app(monkeypatch, stores["runs"], suite="English")
    table = table_with(app, "rank")
    about = json.loads(table.proto.columns)
    with opened(browser, f"{address('runs')}/?suite=English") as page:
        left, sorted_by = TICKS, []
        for place, name in enumerate(table.value.columns):
            if name == "result":
                continue
            start, left = left, left + about[name]["width"]
            # a click on the narrow heading of ranks, which order the table anyway, opens its menu
            if name in ("rank", "model"):
                continue
            click_at(page, start + 8, 15)
            page.wait_for_function(SORTED_BY, arg=place, timeout=9_000)
            numbers = [float(line[place]) for line in rows(page)[1:] if line[place]]
            assert len(set(numbers)) > 1
            assert numbers == sorted(numbers), name
            sorted_by.append(name)
        assert len(sorted_by) == len(about) - 4, "all but index, ranks, names and kinds"


def test_back_and_forward_keep_filters_and_a_name_opens_its_page_in_one_click(browser, address):
    with opened(browser, f"{address('published')}/?suite=English") as page:
        search = page.get_by_label("Search models")
        for words in ("bio-base", "bio-large"):
            search.fill(words)
            page.keyboard.press("Enter")
            page.wait_for_url(f"**search={words}**")
            settle(page)
        page.go_back()
        page.wait_for_url("**search=bio-base**")
        page.wait_for_function(SEARCHED, arg="bio-base")
        page.go_forward()
        page.wait_for_url("**search=bio-large**")
        page.wait_for_function(SEARCHED, arg="bio-large")
        settle(page)
        drawn(page)
        click_at(page, 120, 45)  # the name in the first line
        page.wait_for_url("**/models?model=**")
        page.get_by_role("heading", name="ModernBERT-bio-large").first.wait_for()
        assert len(page.context.pages) == 1, "the same tab"
        page.go_back()
        page.wait_for_url("**search=bio-large**")
        search.wait_for()
        page.wait_for_function(SEARCHED, arg="bio-large")


def test_back_from_another_page_finds_the_choices_in_one_step(browser, address):
    with opened(browser, f"{address('published')}/?suite=English") as page:
        entries = page.evaluate("history.length")
        page.get_by_role("link", name="Tasks", exact=True).click()
        page.wait_for_url("**/tasks?task=*")
        settle(page)
        assert page.evaluate("history.length") == entries + 1
        page.go_back()
        page.wait_for_url("**/?suite=English")
        page.get_by_role("radio", name="English", exact=True, checked=True).wait_for()


def test_back_finds_a_choice_whose_name_in_the_address_another_page_uses_too(browser, address):
    with opened(browser, f"{address('runs')}/errors?model=org/high&task=hoc") as page:
        page.wait_for_url("**/errors?model=org%2Fhigh&task=hoc&seed=42")
        entries = page.evaluate("history.length")
        page.get_by_role("link", name="Needle", exact=True).click()
        page.wait_for_url("**/needle?task=needle_en&models=org%2Flow")
        settle(page)
        assert page.evaluate("history.length") == entries + 1
        page.go_back()
        page.wait_for_url("**/errors?*task=hoc*")
        # the other page's choice stands there until this one is drawn
        page.wait_for_function(TASK_IS, arg="hoc")
        settle(page)
        assert page.get_by_role("combobox", name="Task").input_value() == "hoc"
        assert "task=hoc" in page.url


def test_demo_store_compares_the_pair_that_page_one_names_under_its_average(browser, address):
    with opened(browser, address("demo")) as page:
        assert "Best run here: toy-detour" in page.locator("[data-testid=stMain]").inner_text()
        assert "by task" not in rows(page)[0], "one mean orders everything"
        average = page.get_by_role("combobox", name="Average")
        average.fill("macro")
        average.press("Enter")
        page.wait_for_url("**average=macro+F1**")
        page.get_by_text("Each task counts by macro F1").wait_for()
        page.get_by_role("link", name="Compare", exact=True).click()
        page.get_by_text("toy-detour scores higher than toy-mlm-twin").first.wait_for()
        page.wait_for_url("**/compare?**average=macro+F1**")


def test_the_keyboard_reaches_every_control_in_order_with_a_visible_focus(browser, address):
    with opened(browser, address("demo")) as page:
        page.add_style_tag(content="* { transition: none !important; }")
        wrong: list[str] = []
        for _ in range(90):
            page.keyboard.press("Tab")
            found = page.evaluate(STOP)
            if found is None:
                break
            wrong += found
        assert "\n".join(wrong) == ""
        assert page.evaluate("window.stops.size") > 20
        assert page.evaluate(NEVER_REACHED) == []


def test_enter_on_the_name_of_a_model_opens_its_page(browser, address):
    with opened(browser, f"{address('published')}/?suite=English") as page:
        page.locator("[class*=st-key-bb_table] canvas").first.focus()
        for key in ("ArrowDown", "ArrowRight"):
            page.keyboard.press(key)
        page.locator("td[aria-selected=true]", has_text="models?model=").wait_for(state="attached")
        page.keyboard.press("Enter")
        page.wait_for_url("**/models?model=ModernBERT-bio-base*")
        page.get_by_role("heading", name="ModernBERT-bio-base").first.wait_for()


def test_space_picks_rows_to_compare(browser, address):
    with opened(browser, f"{address('published')}/?suite=English") as page:
        page.locator("[class*=st-key-bb_table] canvas").first.focus()
        for key in ("ArrowDown", " ", "ArrowDown", " "):
            page.keyboard.press(key)
        page.get_by_role("button", name="Compare the picked models").click()
        page.wait_for_url("**/compare?models=*&only=*")


def test_the_menu_of_a_phone_has_a_name_and_closes_after_a_choice(browser, address):
    with opened(browser, address("published"), 390) as page:
        page.get_by_role("button", name="Menu", exact=True).click()
        page.get_by_test_id("stSidebarNavLink").filter(has_text="Models").click()
        page.wait_for_url("**/models?model=*")
        page.wait_for_function(f"{SIDEBAR}.getBoundingClientRect().right <= 0")
        assert page.get_by_role("button", name="Menu", exact=True).is_visible()


def test_a_link_by_a_name_without_its_source_stays_one(browser, address):
    with opened(browser, f"{address('published')}/models?model=PubMedBERT") as page:
        page.get_by_role("heading", name="PubMedBERT").wait_for()
        page.wait_for_url("**/models?model=PubMedBERT+%C2%B7+published")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_published_rows_with_rank_score_and_margin(browser, address, scheme):
    with opened(browser, f"{address('shipped')}/?few_en=true", 390, scheme) as page:
        cards = page.locator(".bb-cards li")
        text = cards.first.inner_text()
        assert all(
            part in text
            for part in ("ModernCamemBERT-bio-large CLM detour (25B)", "61.1", "quaero_emea 70.3")
        )
        assert any("gad 73.8 ±3.6" in card for card in cards.all_inner_texts())
        assert not page.locator("[class*=st-key-bb_table]").first.is_visible()


@pytest.mark.skipif(not AXE.is_file(), reason="`make .venv/axe-core` fetches axe-core")
@pytest.mark.parametrize("path", [*PATHS, "?suite=French"])
def test_no_page_stops_people_who_read_it_otherwise(browser, address, path):
    scheme, width = ("dark", 390) if len(path) % 2 else ("light", 1280)
    with opened(browser, f"{address('runs')}/{path}", width, scheme) as page:
        page.evaluate(AXE.read_text(encoding="utf-8"))
        assert page.evaluate(BARRIERS, MENU) == []
