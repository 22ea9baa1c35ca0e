// The page begins here: each part shows its share of the session.

import { showAlternatives } from "./alternatives.js";
import { showBanner } from "./banner.js";
import { watchChoices } from "./choices.js";
import { showDocument } from "./document.js";
import { byId, fill } from "./element.js";
import { showGlossary } from "./glossary.js";
import { showHelp } from "./help.js";
import { showLanguages } from "./languages.js";
import { showModels, used } from "./models.js";
import { showRequest } from "./request.js";
import { showScreens } from "./screens.js";
import { session, start } from "./session.js";
import { showSource } from "./source.js";
import { ofBrowser } from "./storage.js";
import { showTranslation } from "./translation.js";

const THEMES = { auto: "as the system", light: "light", dark: "dark" };

showBanner();
showLanguages();
showSource();
showTranslation();
watchChoices();
showAlternatives();
showGlossary();
showDocument();
showModels();
showRequest();
showHelp();
showTheme();
showScreens();
session.on(["answer"], drawTiming);
if (document.documentElement.dataset.models === "on") start();

function drawTiming({ answer }) {
  const isDone = answer?.seconds !== undefined;
  const tokens = isDone && `${answer.nTokens} ${answer.nTokens === 1 ? "token" : "tokens"}`;
  const facts = isDone ? [tokens, duration(answer.seconds), used()?.dtype] : [];
  byId("timing").textContent = facts.filter(Boolean).join(" · ");
}

const duration = (seconds) =>
  seconds < 1 ? `${Math.max(1, Math.round(seconds * 1000))} ms` : `${seconds.toFixed(1)} s`;

function showTheme() {
  const button = byId("theme");
  const root = document.documentElement;
  const draw = () => {
    const theme = root.dataset.theme ?? "auto";
    fill(button, theme);
    button.title = `Theme: ${THEMES[theme]}`;
    button.setAttribute("aria-label", button.title);
  };
  button.addEventListener("click", () => {
    const names = Object.keys(THEMES);
    const next = names[(names.indexOf(root.dataset.theme ?? "auto") + 1) % names.length];
    if (next === "auto") delete root.dataset.theme;
    else root.dataset.theme = next;
    ofBrowser.set("heed.theme", next === "auto" ? null : next);
    draw();
  });
  draw();
}
