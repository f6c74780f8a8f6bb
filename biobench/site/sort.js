const heads = table => [...table.tHead.rows[0].cells];
const number = cell => parseFloat((cell.dataset.v || cell.textContent).replace(",", ".").replace("(", ""));
function sort(table, column, down) {
  const head = heads(table)[column], sign = down ? -1 : 1, text = head.classList.contains("t");
  for (const other of heads(table)) other.removeAttribute("aria-sort");
  head.setAttribute("aria-sort", down ? "descending" : "ascending");
  const rows = [...table.tBodies[0].rows].map(row => [row, text ? row.cells[column].textContent : number(row.cells[column])]);
  rows.sort(([, a], [, b]) => text ? sign * a.localeCompare(b) : isNaN(a) || isNaN(b) ? isNaN(a) - isNaN(b) : sign * (a - b));
  table.tBodies[0].append(...rows.map(([row]) => row));
}
all("main table").forEach((table, which) => {
  heads(table).forEach((head, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = head.textContent;
    if (head.dataset.fr) button.dataset.fr = head.dataset.fr;
    delete head.dataset.fr;
    button.addEventListener("click", () => {
      const down = head.hasAttribute("aria-sort") ? head.getAttribute("aria-sort") === "ascending" : !("up" in head.dataset);
      sort(table, column, down);
      keep("sort", [which, column, down ? 1 : 0].join("."));
    });
    head.replaceChildren(button);
  });
  const [at, column, down] = (state.get("sort") || "").split(".").map(Number);
  if (at === which && heads(table)[column]) sort(table, column, down === 1);
});
