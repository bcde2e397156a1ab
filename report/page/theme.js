// Light or dark: as the system has it, unless the reader chose; known before anything is drawn.
(() => {
  "use strict";
  const root = document.documentElement;
  const kept = (() => { try { return localStorage.getItem("dpbench-theme"); } catch { return null; } })();
  if (kept === "light" || kept === "dark") root.dataset.theme = kept;
  root.classList.add("scripted");

  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme ?? (system.matches ? "dark" : "light")) === "dark";
  addEventListener("DOMContentLoaded", () => {
    const button = document.getElementById("theme");
    const say = () => { button.textContent = dark() ? "Light" : "Dark"; };
    button.addEventListener("click", () => {
      root.dataset.theme = dark() ? "light" : "dark";
      try { localStorage.setItem("dpbench-theme", root.dataset.theme); } catch { /* not kept, then */ }
      say();
    });
    system.addEventListener("change", say);
    say();
  });
})();
