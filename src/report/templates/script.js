"use strict";
(() => {
  // Copy buttons. The clipboard API is missing on some file:// pages: select and copy there.
  const fallback = (node) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    const selection = getSelection();
    selection.removeAllRanges();
    selection.addRange(range);
    const done = document.execCommand("copy");
    selection.removeAllRanges();
    return done;
  };
  for (const button of document.querySelectorAll("button.copy")) {
    button.addEventListener("click", async () => {
      const pre = button.parentElement.querySelector("pre");
      let done = true;
      try {
        await navigator.clipboard.writeText(pre.textContent);
      } catch {
        done = fallback(pre);
      }
      button.textContent = done ? "Copied" : "Not allowed";
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });
  }

  // Tabs. Without script all panels are shown, one below the other.
  document.querySelectorAll(".tabs").forEach((tabs, group) => {
    const panels = [...tabs.querySelectorAll(".tab")];
    if (panels.length < 2) return;
    const bar = document.createElement("div");
    bar.className = "tabbar";
    bar.setAttribute("role", "tablist");
    const buttons = panels.map((panel, index) => {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = panel.dataset.tab;
      button.id = `tab-${group}-${index}`;
      panel.id = `panel-${group}-${index}`;
      button.setAttribute("role", "tab");
      button.setAttribute("aria-controls", panel.id);
      panel.setAttribute("role", "tabpanel");
      panel.setAttribute("aria-labelledby", button.id);
      button.addEventListener("click", () => show(index));
      button.addEventListener("keydown", (event) => {
        const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
        if (!step) return;
        const next = (index + step + panels.length) % panels.length;
        show(next);
        buttons[next].focus();
      });
      bar.append(button);
      return button;
    });
    const show = (chosen) => {
      panels.forEach((panel, index) => { panel.hidden = index !== chosen; });
      buttons.forEach((button, index) => {
        button.setAttribute("aria-selected", String(index === chosen));
        button.tabIndex = index === chosen ? 0 : -1;
      });
    };
    tabs.prepend(bar);
    show(0);
  });

  // Pointing at a contender, in a legend, the table or a picture, fades the others in all pictures.
  let sheet = null;
  const mark = (series) => {
    if (!sheet) {
      sheet = document.createElement("style");
      document.head.append(sheet);
    }
    sheet.textContent = series === null ? "" :
      `svg [data-series]:not([data-series="${series}"]),.legend [data-series]:not([data-series="${series}"]){opacity:.18}`;
  };
  for (const node of document.querySelectorAll(".legend [data-series], svg [data-series]")) {
    node.addEventListener("pointerenter", () => mark(node.dataset.series));
    node.addEventListener("pointerleave", () => mark(null));
  }

  // The fastest script and the numbers, to be copied and kept.
  const say = (button, text) => {
    const before = button.textContent;
    button.textContent = text;
    setTimeout(() => { button.textContent = before; }, 1500);
  };
  for (const button of document.querySelectorAll("[data-copy],[data-copy-text]")) {
    button.addEventListener("click", async () => {
      const node = button.dataset.copy ? document.getElementById(button.dataset.copy) : button.parentElement.querySelector("code");
      const text = button.dataset.copy ? node.textContent : button.dataset.copyText;
      let done = true;
      try {
        await navigator.clipboard.writeText(text);
      } catch {
        const hidden = node.hidden;
        node.hidden = false;
        done = fallback(node);
        node.hidden = hidden;
      }
      say(button, done ? "Copied" : "Not allowed");
    });
  }
  for (const button of document.querySelectorAll("[data-download]")) {
    button.addEventListener("click", () => {
      const link = document.createElement("a");
      link.href = URL.createObjectURL(new Blob([document.getElementById(button.dataset.download).textContent], { type: "text/plain" }));
      link.download = button.dataset.name;
      link.click();
      setTimeout(() => URL.revokeObjectURL(link.href), 10000);
      say(button, "Saved");
    });
  }

  // A link to a folded section opens it.
  const open = () => {
    const section = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const fold = section && section.querySelector(":scope > details");
    if (!fold) return;
    fold.open = true;
    section.scrollIntoView();
  };
  addEventListener("hashchange", open);
  open();
  for (const link of document.querySelectorAll('a[href^="#"]')) link.addEventListener("click", () => setTimeout(open));

  // Headings of tables sort: numbers with their units by size, the rest by letters.
  const UNITS = { "µs": 1e-6, us: 1e-6, ms: 1e-3, s: 1, min: 60, h: 3600, KiB: 1024, MiB: 2 ** 20, GiB: 2 ** 30, k: 1e3, M: 1e6, G: 1e9 };
  const value = (cell) => {
    const text = (cell.querySelector("b,span") || cell).textContent.trim().replace(/^[≥≤<>±~] ?/, "");
    const found = text.match(/^(-?[\d.,]+(?:e[-+]?\d+)?)(?:–\d+)? ?([a-zA-Zµ]*)/);
    if (!found) return { text };
    const rest = text.match(/min (\d+) s/);
    return { number: parseFloat(found[1].replaceAll(",", "")) * (UNITS[found[2]] || 1) + (rest ? +rest[1] : 0), text };
  };
  const compare = (a, b) => {
    if (a.number !== undefined && b.number !== undefined) return a.number - b.number;
    if (a.number === undefined && b.number === undefined) return a.text.localeCompare(b.text);
    return a.number === undefined ? 1 : -1;
  };
  for (const table of document.querySelectorAll("main table:not(.bars)")) {
    const heads = [...table.querySelectorAll("thead th")];
    if (table.querySelectorAll("tbody tr").length < 3) continue;
    heads.forEach((head, column) => {
      if (!head.textContent.trim()) return;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "sort";
      button.append(...head.childNodes);
      head.append(button);
      head.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        heads.forEach((other) => { if (other.hasAttribute("aria-sort")) other.setAttribute("aria-sort", "none"); });
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const body = table.tBodies[0];
        const rows = [...body.rows].map((row) => ({ row, key: value(row.cells[column]) }));
        rows.sort((a, b) => (down ? compare(b.key, a.key) : compare(a.key, b.key)));
        body.append(...rows.map((entry) => entry.row));
      });
    });
  }
})();
