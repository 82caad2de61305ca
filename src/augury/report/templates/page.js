"use strict";
// The page reads well without this script; it adds a theme switch, sorting, copying and saving.
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const root = document.documentElement;
  all("[data-script]").forEach((element) => { element.hidden = false; });

  const theme = document.querySelector("[data-theme-switch]");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : system.matches);
  const name = () => { theme.textContent = dark() ? "Light theme" : "Dark theme"; };
  theme.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; name(); });
  system.addEventListener("change", name);
  name();

  const value = (row, column) => {
    const text = row.cells[column].dataset.value;
    const number = Number(text);
    return Number.isNaN(number) ? text : number;
  };
  const sort = (header) => {
    const table = header.closest("table");
    const first = header.dataset.first;
    const other = first === "ascending" ? "descending" : "ascending";
    const order = header.getAttribute("aria-sort") === first ? other : first;
    all("th[aria-sort]", table).forEach((h) => h.setAttribute("aria-sort", "none"));
    header.setAttribute("aria-sort", order);
    const sign = order === "ascending" ? 1 : -1;
    const rows = [...table.tBodies[0].rows];
    rows.sort((a, b) => {
      const [x, y] = [value(a, header.cellIndex), value(b, header.cellIndex)];
      return sign * (x < y ? -1 : x > y ? 1 : 0);
    });
    table.tBodies[0].append(...rows);
  };
  all("th[aria-sort] button").forEach((button) => {
    button.addEventListener("click", () => sort(button.closest("th")));
  });

  all("[data-open]").forEach((button) => {
    button.addEventListener("click", () => {
      all("details", document.getElementById("pictures")).forEach((d) => {
        d.open = button.dataset.open === "yes";
      });
    });
  });

  all("[data-copy]").forEach((button) => {
    button.addEventListener("click", async () => {
      const source = button.previousElementSibling;
      try {
        await navigator.clipboard.writeText(source.textContent);
        button.textContent = "Copied";
      } catch {
        getSelection().selectAllChildren(source);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  });

  const json = document.getElementById("data").textContent;
  const save = document.querySelector("[data-save]");
  save.addEventListener("click", () => {
    const link = document.createElement("a");
    link.href = URL.createObjectURL(new Blob([json], { type: "application/json" }));
    link.download = save.dataset.save;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  });
  const view = document.querySelector(".data details");
  view.addEventListener("toggle", () => { view.querySelector("pre").textContent = json; });
})();
