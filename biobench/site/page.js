"use strict";
const root = document.documentElement, state = new URLSearchParams(location.hash.slice(1));
const all = (what, where = document) => [...where.querySelectorAll(what)];
function keep(name, value) {
  if (value) state.set(name, value); else state.delete(name);
  history.replaceState(null, "", state.size ? "#" + state : location.pathname);
  links();
}
function links() {
  const lang = state.get("lang");
  for (const a of all("a:not([rel])")) a.hash = lang ? "lang=" + lang : "";
}
const english = new Map();
function put(node, key, french) {
  const place = key ? node.getAttributeNode(key) : node;
  if (!english.has(place)) english.set(place, place.textContent);
  const text = english.get(place);
  place.textContent = root.lang === "fr" ? french(text) : text;
}
function speak(lang) {
  for (const button of all("header button")) button.setAttribute("aria-pressed", button.value === lang);
  if (root.lang === lang) return;
  root.lang = lang;
  for (const node of all("[data-fr]")) put(node, "", () => node.dataset.fr);
  for (const node of all("[data-fr-label]")) put(node, "aria-label", () => node.dataset.frLabel);
  for (const node of all("[data-fr-title]")) put(node, "title", () => node.dataset.frTitle);
  for (const node of all("tbody td:not(.t), .n")) if (!node.children.length)
    put(node, "", text => text.replace(/(\d)\.(\d)/g, "$1,$2"));
  for (const node of all("figure text:not([data-fr])"))
    put(node, "", text => /^[−-]?[\d.]+[kMG]?$/.test(text) ? text.replace(".", ",") : text);
}
