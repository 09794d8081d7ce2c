"use strict";
(() => {
  const lines = JSON.parse(document.getElementById("data").textContent);
  const plot = document.getElementById("plot");
  if (!plot) return;
  const MOST_ROWS = 200;
  const NS = "http://www.w3.org/2000/svg";
  const view = { line: 0, from: 0, to: 0, at: -1, drag: null };
  const line = () => lines[view.line];
  const count = () => line().ms.length;
  const digits = (ms) => (ms >= 1000 ? Math.round(ms).toLocaleString("en") : ms.toPrecision(3));
  const when = (at) => at.slice(0, 16).replace("T", " ");

  function element(name, attributes, text) {
    const made = document.createElementNS(NS, name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  }
  function html(name, text, cls) {
    const made = document.createElement(name);
    made.textContent = text;
    if (cls) made.className = cls;
    return made;
  }

  // Log scale of milliseconds over the range, and linear scale of runs.
  function scales(data, from, to, box, ranges) {
    let low = Infinity, high = 0;
    for (let i = from; i < to; ++i) {
      low = Math.min(low, data.ms[i], (ranges && data.low[i]) || Infinity);
      high = Math.max(high, data.ms[i], (ranges && data.high[i]) || 0);
    }
    if (high < low * 1.02) { low /= 1.01; high *= 1.01; }
    const span = Math.log(high) - Math.log(low);
    const x = (i) => box.left + ((i - from + 0.5) / (to - from)) * (box.right - box.left);
    const y = (ms) => box.bottom - ((Math.log(ms) - Math.log(low)) / span) * (box.bottom - box.top);
    return { x, y, low, high };
  }

  const near = (value) => Math.round(value * 10) / 10;
  function dots(data, from, to, s) {
    const parts = [];
    for (let i = from; i < to; ++i) parts.push(`M${near(s.x(i))} ${near(s.y(data.ms[i]))}h0`);
    return parts.join("");
  }
  function levels(data, from, to, s) {
    const parts = [];
    for (let i = from; i < to; ++i) {
      const begins = i === from || data.level[i] !== data.level[i - 1];
      parts.push(begins ? `M${near(s.x(i - 0.5))} ${near(s.y(data.level[i]))}` : "");
      if (i + 1 === to || data.level[i + 1] !== data.level[i]) parts.push(`H${near(s.x(i + 0.5))}`);
    }
    return parts.join("");
  }
  function intervals(data, from, to, s) {
    const parts = [];
    for (let i = from; i < to; ++i)
      if (data.low[i] && data.high[i])
        parts.push(`M${near(s.x(i))} ${near(s.y(data.low[i]))}V${near(s.y(data.high[i]))}`);
    return parts.join("");
  }

  function ticks(svg, s, box) {
    svg.append(element("text", { x: 6, y: 14 }, "ms/step"));
    const steps = 4;
    for (let k = 0; k <= steps; ++k) {
      const ms = Math.exp(Math.log(s.low) + ((Math.log(s.high) - Math.log(s.low)) * k) / steps);
      const y = s.y(ms);
      svg.append(element("line", { class: "tick", x1: box.left, x2: box.right, y1: y, y2: y }));
      svg.append(element("text", { x: box.left - 6, y: y + 4, "text-anchor": "end" }, digits(ms)));
    }
    const about = Math.max(2, Math.floor((box.right - box.left) / 150));
    for (let k = 0; k < about; ++k) {
      const i = Math.min(view.to - 1, view.from + Math.round(((view.to - view.from - 1) * k) / (about - 1)));
      const anchor = k === 0 ? "start" : k === about - 1 ? "end" : "middle";
      svg.append(element("text", { x: s.x(i), y: box.bottom + 34, "text-anchor": anchor }, line().at[i].slice(0, 10)));
    }
  }

  function signs(svg, s, box) {
    for (const [at, text, packages] of line().marks) {
      if (at < view.from || at >= view.to) continue;
      const cls = packages ? "mark-sign packages" : "mark-sign";
      const sign = element("text", { class: cls, x: s.x(at - 0.5), y: box.bottom + 16, "text-anchor": "middle" },
        packages ? "▾" : "'");
      sign.append(element("title", {}, text));
      svg.append(sign);
    }
    for (const [at, text, accepted] of line().shifts) {
      if (at < view.from || at >= view.to) continue;
      const cls = accepted ? "accepted" : "open", x = s.x(at - 0.5);
      svg.append(element("line", { class: `shift ${cls}`, x1: x, x2: x, y1: box.top, y2: box.bottom }));
      const sign = element("text", { class: `shift-sign ${cls}`, x, y: box.top - 3, "text-anchor": "middle" },
        accepted ? "◆" : "▲");
      sign.append(element("title", {}, text));
      svg.append(sign);
    }
  }

  function cursor(svg, s, box) {
    if (view.at < view.from || view.at >= view.to) return;
    const x = s.x(view.at);
    svg.append(element("line", { class: "cursor", x1: x, x2: x, y1: box.top, y2: box.bottom }));
    svg.append(element("circle", { class: "here", cx: x, cy: s.y(line().ms[view.at]), r: 5 }));
  }

  let drawn = null;
  function draw() {
    const width = plot.clientWidth || 600, height = plot.clientHeight || 320;
    const box = { left: 58, right: width - 14, top: 22, bottom: height - 44 };
    const ranges = document.getElementById("intervals").checked;
    const data = line(), s = scales(data, view.from, view.to, box, ranges);
    const svg = element("svg", { viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    ticks(svg, s, box);
    if (ranges) svg.append(element("path", { class: "ranges", d: intervals(data, view.from, view.to, s) }));
    const size = Math.max(2.5, Math.min(7, (4 * (box.right - box.left)) / (view.to - view.from)));
    svg.append(element("path", { class: "dots", "stroke-width": size, d: dots(data, view.from, view.to, s) }));
    svg.append(element("path", { class: "levels", d: levels(data, view.from, view.to, s) }));
    signs(svg, s, box);
    cursor(svg, s, box);
    if (view.drag) {
      const [a, b] = [Math.min(...view.drag), Math.max(...view.drag)];
      svg.append(element("rect", { class: "chosen", x: a, y: box.top, width: b - a, height: box.bottom - box.top }));
    }
    plot.replaceChildren(svg);
    drawn = { s, box };
    plot.dataset.from = view.from;
    plot.dataset.to = view.to;
  }

  function tell() {
    const d = line(), i = view.at;
    const out = document.getElementById("point");
    if (i < 0) { out.textContent = `${view.to - view.from} runs shown`; return; }
    const changed = d.marks.filter((m) => m[0] === i).map((m) => m[1]).join(", ");
    const range = d.low[i] && d.high[i] ? ` [${digits(d.low[i])}, ${digits(d.high[i])}]` : "";
    out.textContent = `${when(d.at[i])}: ${digits(d.ms[i])} ms/step${range}, level ${digits(d.level[i])} ms`
      + (d.commit[i] ? `, commit ${d.commit[i]}` : "") + (changed ? `; changed: ${changed}` : "")
      + (d.note[i] ? `; ${d.note[i]}` : "") + `; run ${d.run[i]}`;
  }

  function table() {
    const d = line(), body = document.querySelector("#points tbody");
    if (!body.closest("details").open) return;
    const changed = new Map(d.marks.map((m) => [m[0], m[1]]));
    const first = Math.max(view.from, view.to - MOST_ROWS);
    body.replaceChildren();
    for (let i = view.to - 1; i >= first; --i) {
      const row = document.createElement("tr");
      row.append(html("td", when(d.at[i])), html("td", digits(d.ms[i]), "num"), html("td", digits(d.level[i]), "num"),
        html("td", d.commit[i] || "–"), html("td", changed.get(i) || "–"), html("td", d.run[i]));
      body.append(row);
    }
    document.getElementById("table-note").textContent = first > view.from
      ? `The latest ${MOST_ROWS} of ${view.to - view.from} runs of the range.` : "";
  }

  function shifts() {
    const out = document.getElementById("shifts");
    out.replaceChildren();
    for (const [, text, accepted, note, command] of line().shifts) {
      const p = html("p", `${accepted ? "Accepted step" : "Nominated shift"}: ${text}${note ? ` – ${note}` : ""}. `,
        accepted ? "accepted" : "open");
      if (!accepted) p.append(html("span", "A history nominates, a pair decides: "), html("code", command));
      out.append(p);
    }
  }

  function range(from, to) {
    const least = Math.min(5, count()), size = Math.max(least, Math.min(count(), Math.round(to - from)));
    view.from = Math.max(0, Math.min(count() - size, Math.round(from)));
    view.to = view.from + size;
    draw();
    table();
    tell();
  }
  function zoom(factor) {
    const size = view.to - view.from;
    const centre = view.at >= view.from && view.at < view.to ? view.at : view.from + size / 2;
    range(centre - (size * factor) / 2, centre + (size * factor) / 2);
  }
  function move(share) {
    const by = Math.max(1, Math.round((view.to - view.from) * Math.abs(share))) * Math.sign(share);
    range(view.from + by, view.to + by);
  }
  function point(i) {
    view.at = Math.max(0, Math.min(count() - 1, i));
    if (view.at < view.from) range(view.at, view.at + view.to - view.from);
    else if (view.at >= view.to) range(view.at + 1 - (view.to - view.from), view.at + 1);
    else { draw(); tell(); }
  }

  function choose(index, at) {
    view.line = index;
    view.at = at === undefined ? -1 : at;
    const d = line();
    document.getElementById("chart-name").textContent = d.name;
    document.getElementById("chart-about").textContent = d.about
      + (d.left > 0 ? `; ${d.left} earlier runs are not on this page` : "");
    plot.setAttribute("aria-label", `${d.name}: step times of ${count()} runs, ${d.shifts.length} level shifts`);
    for (const button of document.querySelectorAll(".multiples button"))
      button.setAttribute("aria-pressed", String(Number(button.dataset.line) === index));
    shifts();
    range(0, count());
  }

  function spark(place, d) {
    const box = { left: 2, right: 218, top: 4, bottom: 50 }, n = d.ms.length;
    const s = scales(d, 0, n, box, false);
    const svg = element("svg", { viewBox: "0 0 220 54", preserveAspectRatio: "none", "aria-hidden": "true" });
    // More points than pixels show nothing more.
    const step = Math.max(1, Math.floor(n / 400)), parts = [];
    for (let i = 0; i < n; i += step) parts.push(`M${near(s.x(i))} ${near(s.y(d.ms[i]))}h0`);
    svg.append(element("path", { class: "dots", "stroke-width": 2.5, d: parts.join("") }));
    svg.append(element("path", { class: "levels", d: levels(d, 0, n, s) }));
    place.append(svg);
  }

  const actions = {
    earlier: () => move(-0.5), later: () => move(0.5), in: () => zoom(0.5), out: () => zoom(2),
    all: () => range(0, count()),
  };
  const keys = {
    ArrowLeft: () => point(view.at < 0 ? view.to - 1 : view.at - 1),
    ArrowRight: () => point(view.at < 0 ? view.from : view.at + 1),
    Home: () => point(0), End: () => point(count() - 1),
    "+": actions.in, "=": actions.in, "-": actions.out, Escape: actions.all,
  };
  const place = (event) => event.clientX - plot.getBoundingClientRect().left;
  const run = (x) => {
    const { left, right } = drawn.box;
    return view.from + Math.floor(((x - left) / (right - left)) * (view.to - view.from));
  };

  for (const button of document.querySelectorAll("[data-do]"))
    button.addEventListener("click", () => actions[button.dataset.do]());
  for (const button of document.querySelectorAll("button[data-line]"))
    button.addEventListener("click", () => {
      choose(Number(button.dataset.line), button.dataset.at ? Number(button.dataset.at) : undefined);
      document.getElementById("chart").scrollIntoView();
      document.getElementById("chart-name").focus({ preventScroll: true });
    });
  plot.addEventListener("keydown", (event) => {
    if (!keys[event.key] || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    keys[event.key]();
  });
  plot.addEventListener("pointerdown", (event) => {
    view.drag = [place(event), place(event)];
    try { plot.setPointerCapture(event.pointerId); } catch { /* it left already */ }
  });
  plot.addEventListener("pointermove", (event) => {
    if (view.drag) view.drag[1] = place(event);
    point(Math.max(view.from, Math.min(view.to - 1, run(place(event)))));
  });
  plot.addEventListener("pointerup", () => {
    const drag = view.drag;
    view.drag = null;
    if (!drag) return;
    const [a, b] = [Math.min(...drag), Math.max(...drag)];
    if (b - a > 8) range(run(a), run(b) + 1);
    else draw();
  });
  plot.addEventListener("pointercancel", () => { view.drag = null; draw(); });
  document.getElementById("intervals").addEventListener("change", draw);
  document.querySelector("#points").closest("details").addEventListener("toggle", table);
  addEventListener("resize", draw);

  for (const small of document.querySelectorAll("[data-spark]")) spark(small, lines[Number(small.dataset.spark)]);
  const open = lines.findIndex((d) => d.shifts.some((shift) => !shift[2]));
  choose(Math.max(0, open));
})();
