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

  // On paper everything is open.
  addEventListener("beforeprint", () => {
    document.querySelectorAll("details").forEach((details) => { details.open = true; });
  });
})();
