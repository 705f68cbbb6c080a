// A flame graph on a canvas: boxes come sorted by depth and then from left to right, so that a row is a slice and what the
// pointer is on is found by bisection. Only rows in sight are drawn, and of boxes narrower than half a pixel one a pixel.
"use strict";
(() => {
  const graph = JSON.parse(document.getElementById("graph").textContent);
  const { parent, name, depth, left, width, change, total, titles, labels } = graph;
  const at = (id) => document.getElementById(id);
  const [main, canvas, spacer, tip, status, input] = ["main", "canvas", "spacer", "tip", "status", "search"].map(at);
  const context = canvas.getContext("2d");
  const ROW = 18;
  const FONT = '11.5px ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace';
  const rows = [];
  depth.forEach((level, box) => (rows[level] ??= { first: box, end: box }).end++);
  const state = { zoomed: 0, chosen: 0, hovered: -1, found: null, text: "", isIcicle: false, theme: "light" };
  let pixels = 0;
  let sight = 0;
  let character = 7;

  // Text comes cut by code points, not by halves of them.
  const cut = (text, room) => (text.length <= room ? text : [...text].slice(0, room - 1).join("") + "…");
  const whole = () => Math.max(sight, rows.length * ROW + 2);
  const top = (level) => (state.isIcicle ? level * ROW : whole() - (level + 1) * ROW);
  const isCaller = (box) => depth[box] < depth[state.zoomed];
  const edges = (box) => {
    if (isCaller(box)) return [0, pixels];
    const scale = pixels / width[state.zoomed];
    return [(left[box] - left[state.zoomed]) * scale, width[box] * scale];
  };

  // First box of a row that ends right of a place on the ruler.
  function bisect(row, place) {
    let [low, high] = [row.first, row.end];
    while (low < high) {
      const middle = (low + high) >> 1;
      if (left[middle] + width[middle] <= place) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  function callerAt(level) {
    let box = state.zoomed;
    while (depth[box] > level) box = parent[box];
    return box;
  }

  function* inSight(level) {
    if (level < depth[state.zoomed]) {
      yield callerAt(level);
      return;
    }
    const row = rows[level];
    const end = left[state.zoomed] + width[state.zoomed];
    for (let box = bisect(row, left[state.zoomed]); box < row.end && left[box] < end; box++) yield box;
  }

  function hatch(isRising) {
    const tile = document.createElement("canvas");
    tile.width = tile.height = 8;
    const ink = tile.getContext("2d");
    ink.strokeStyle = state.theme === "dark" ? "#fff8" : "#0006";
    ink.lineWidth = 1.5;
    for (const shift of [-8, 0, 8]) {
      ink.moveTo(shift, isRising ? 8 : 0);
      ink.lineTo(shift + 8, isRising ? 0 : 8);
    }
    ink.stroke();
    return context.createPattern(tile, "repeat");
  }

  const NEW = 3;
  function colour(box, palette) {
    if (state.found?.[box]) return state.theme === "dark" ? "#8f3fa0" : "#d67be6";
    return graph.strength ? palette[graph.changes[change[box]]][graph.strength[box]] : palette[graph.kinds[name[box]]][graph.shades[name[box]]];
  }

  function drawRow(level, y, palette, hatches, ink) {
    let last = -1;
    for (const box of inSight(level)) {
      const [x, wide] = edges(box);
      if (wide < 0.5 && Math.floor(x) === last) continue;
      last = Math.floor(x);
      context.globalAlpha = isCaller(box) ? 0.5 : 1;
      context.fillStyle = colour(box, palette);
      context.fillRect(x, y, Math.max(wide - 0.6, 0.6), ROW - 1);
      if (change[box] >= NEW && wide >= 4) {
        context.fillStyle = hatches[change[box] - NEW];
        context.fillRect(x, y, wide - 0.6, ROW - 1);
      }
      const room = Math.floor((wide - 6) / character);
      if (room >= 3) {
        context.fillStyle = ink;
        context.fillText(cut(labels[name[box]][change[box]] ?? "", room), x + 3, y + ROW - 5);
      }
      if (box === state.chosen || box === state.hovered) {
        context.strokeStyle = ink;
        context.lineWidth = box === state.chosen ? 1.5 : 1;
        context.strokeRect(x + 0.5, y + 0.5, Math.max(wide - 1.5, 0.5), ROW - 2);
      }
    }
    context.globalAlpha = 1;
  }

  function draw() {
    const ratio = window.devicePixelRatio || 1;
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, pixels, sight);
    context.font = FONT;
    character = context.measureText("mmmmmmmmmm").width / 10;
    const ink = state.theme === "dark" ? "#f2f2f2" : "#000";
    const hatches = [hatch(true), hatch(false)];
    rows.forEach((_, level) => {
      const y = top(level) - main.scrollTop;
      if (y > -ROW && y < sight) drawRow(level, y, graph.palette[state.theme], hatches, ink);
    });
  }

  function resize() {
    const ratio = window.devicePixelRatio || 1;
    pixels = main.clientWidth - 20;
    sight = main.clientHeight;
    canvas.width = pixels * ratio;
    canvas.height = sight * ratio;
    canvas.style.width = `${pixels}px`;
    canvas.style.height = `${sight}px`;
    spacer.style.height = `${whole() - sight}px`;
    draw();
  }

  const base = () => (main.scrollTop = state.isIcicle ? 0 : whole());
  const percent = (part) => `${((100 * part) / Math.max(total[0], 1)).toFixed(2)} %`;

  function say() {
    const parts = [];
    if (state.found) parts.push(`"${state.text}": ${state.foundBoxes} frames, ${state.foundSamples} samples, ${percent(state.foundSamples)}`);
    if (state.chosen) parts.push(titles[state.chosen].split("\n").join("; "));
    status.textContent = parts.join("  |  ") || `${parent.length - 1} frames`;
    const words = new URLSearchParams();
    if (state.zoomed) words.set("box", state.zoomed);
    if (state.text) words.set("search", state.text);
    history.replaceState(null, "", `#${words}`);
  }

  function search(text) {
    state.text = text;
    state.found = null;
    if (text) {
      let pattern;
      try {
        pattern = new RegExp(text, "i");
      } catch {
        pattern = new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
      }
      const matches = graph.names.map((each) => pattern.test(each));
      const covered = new Uint8Array(parent.length);
      state.found = new Uint8Array(parent.length);
      state.foundBoxes = state.foundSamples = 0;
      // Samples through a found box, none twice: a box below a found one is part of it.
      for (let box = 1; box < parent.length; box++) {
        state.found[box] = matches[name[box]] ? 1 : 0;
        state.foundBoxes += state.found[box];
        if (state.found[box] && !covered[parent[box]]) state.foundSamples += total[box];
        covered[box] = state.found[box] | covered[parent[box]];
      }
    }
    say();
    draw();
  }

  function zoom(box) {
    state.zoomed = state.chosen = box;
    state.hovered = -1;
    tip.hidden = true;
    say();
    draw();
  }

  function choose(box) {
    state.chosen = box;
    const y = top(depth[box]);
    if (y < main.scrollTop) main.scrollTop = y;
    if (y + ROW > main.scrollTop + sight) main.scrollTop = y + ROW - sight;
    say();
    draw();
  }

  function reset() {
    input.value = "";
    state.zoomed = state.chosen = 0;
    base();
    search("");
  }

  function boxAt(event) {
    const bounds = canvas.getBoundingClientRect();
    const [x, y] = [event.clientX - bounds.left, event.clientY - bounds.top + main.scrollTop];
    const level = Math.floor(state.isIcicle ? y / ROW : (whole() - y) / ROW);
    if (level < 0 || level >= rows.length || x < 0 || x >= pixels) return -1;
    if (level < depth[state.zoomed]) return callerAt(level);
    const place = left[state.zoomed] + (x / pixels) * width[state.zoomed];
    const box = bisect(rows[level], place);
    return box < rows[level].end && left[box] <= place ? box : -1;
  }

  function hover(event) {
    const box = boxAt(event);
    tip.hidden = box < 0;
    if (box >= 0) {
      tip.textContent = titles[box];
      tip.style.left = `${Math.min(event.clientX + 12, innerWidth - tip.offsetWidth - 8)}px`;
      tip.style.top = `${event.clientY + 18 + tip.offsetHeight > innerHeight ? event.clientY - tip.offsetHeight - 8 : event.clientY + 18}px`;
    }
    if (box !== state.hovered) {
      state.hovered = box;
      draw();
    }
  }

  function setTheme(theme) {
    state.theme = document.documentElement.dataset.theme = theme;
    for (const swatch of at("legend").children) {
      const [kind, shade] = swatch.dataset.colour.split(" ");
      swatch.style.setProperty("--swatch", graph.palette[theme][kind]?.[Number(shade.slice(1))] ?? "#888");
    }
    draw();
  }

  function turn() {
    state.isIcicle = !state.isIcicle;
    base();
    draw();
  }

  const within = (box) => depth[box] < depth[state.zoomed] || (left[box] >= left[state.zoomed] && left[box] + width[box] <= left[state.zoomed] + width[state.zoomed]);
  function neighbour(step) {
    const box = state.chosen + step;
    return parent[box] === parent[state.chosen] && depth[box] === depth[state.chosen] && within(box) ? box : state.chosen;
  }
  function widestCallee() {
    const row = rows[depth[state.chosen] + 1];
    if (!row) return state.chosen;
    let best = -1;
    for (let box = bisect(row, left[state.chosen]); box < row.end && parent[box] <= state.chosen; box++) {
      if (parent[box] === state.chosen && within(box) && (best < 0 || width[box] > width[best])) best = box;
    }
    return best < 0 ? state.chosen : best;
  }
  const inward = () => choose(widestCallee());
  const outward = () => choose(Math.max(parent[state.chosen], 0));
  const keys = {
    ArrowUp: () => (state.isIcicle ? outward() : inward()),
    ArrowDown: () => (state.isIcicle ? inward() : outward()),
    ArrowLeft: () => choose(neighbour(-1)),
    ArrowRight: () => choose(neighbour(1)),
    Enter: () => zoom(state.chosen),
    Backspace: () => zoom(Math.max(parent[state.zoomed], 0)),
    Escape: reset,
    "/": () => input.focus(),
    i: turn,
    t: () => setTheme(state.theme === "dark" ? "light" : "dark"),
  };

  document.addEventListener("keydown", (event) => {
    const isTyping = event.target === input;
    if ((event.ctrlKey || event.metaKey) && event.key === "f") input.focus();
    else if (isTyping && ["Escape", "Enter"].includes(event.key)) {
      if (event.key === "Escape") reset();
      main.focus({ preventScroll: true });
    } else if (!isTyping && event.target.tagName !== "BUTTON" && keys[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) keys[event.key]();
    else return;
    event.preventDefault();
  });
  canvas.addEventListener("mousemove", hover);
  canvas.addEventListener("mouseleave", () => {
    tip.hidden = true;
    state.hovered = -1;
    draw();
  });
  canvas.addEventListener("click", (event) => {
    const box = boxAt(event);
    if (box >= 0) zoom(box);
  });
  main.addEventListener("scroll", draw);
  window.addEventListener("resize", resize);
  input.addEventListener("input", () => search(input.value));
  at("reset").addEventListener("click", reset);
  at("turn").addEventListener("click", turn);
  at("theme").addEventListener("click", keys.t);

  const words = new URLSearchParams(location.hash.slice(1));
  const darkness = matchMedia("(prefers-color-scheme: dark)");
  darkness.addEventListener("change", () => setTheme(darkness.matches ? "dark" : "light"));
  setTheme(darkness.matches ? "dark" : "light");
  resize();
  base();
  const box = Number(words.get("box"));
  if (box > 0 && box < parent.length) zoom(box);
  input.value = words.get("search") ?? "";
  search(input.value);
  main.focus({ preventScroll: true });
})();
