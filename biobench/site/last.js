for (const button of all("header button")) button.addEventListener("click", () => { speak(button.value); keep("lang", button.value); });
document.querySelector("header div").hidden = false;
speak(state.get("lang") === "fr" || !state.get("lang") && navigator.language.startsWith("fr") ? "fr" : "en");
links();
