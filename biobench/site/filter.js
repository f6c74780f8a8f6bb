const form = document.querySelector("form");
function filter() {
  const name = form.elements.q.value.toLowerCase(), below = +form.elements.below.value, source = form.elements.source.value;
  let count = 0;
  for (const row of all(".board tbody tr")) {
    const size = +row.dataset.size, hide = !row.cells[1].textContent.toLowerCase().includes(name)
      || below && !(size < below && size) || source && row.dataset.source !== source;
    row.hidden = hide;
    count += !hide;
  }
  form.querySelector("output").textContent = count;
}
if (form) {
  form.hidden = false;
  for (const box of form.elements) if (box.name) {
    box.value = state.get(box.name) || "";
    box.addEventListener("input", () => { keep(box.name, box.value); filter(); });
  }
  form.addEventListener("submit", event => event.preventDefault());
  filter();
}
