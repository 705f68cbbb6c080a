// Zoom, search and keyboard for the flame graph around this script. Boxes are groups in the order of the arrays below.
"use strict";
(() => {
  const svg = document.documentElement;
  const { left, width, parent, labels, label, samples = width, ruler, margin, pixels, character } = JSON.parse(document.getElementById("numbers").textContent);
  const groups = [...document.querySelectorAll("#boxes > g")];
  const status = document.getElementById("status");
  const names = groups.map((group) => group.querySelector("title").textContent);
  const summary = status.textContent;
  let zoomed = 0;
  let chosen = 0;
  let found = "";

  const element = (name, attributes, text) => {
    const made = document.createElementNS("http://www.w3.org/2000/svg", name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    if (text !== undefined) made.textContent = text;
    return made;
  };
  const isWithin = (box, outer) => left[box] >= left[outer] && left[box] + width[box] <= left[outer] + width[outer];
  const callers = (box) => {
    const path = new Set();
    for (let up = parent[box]; up >= 0; up = parent[up]) path.add(up);
    return path;
  };

  function place(box, x, wide) {
    for (const rect of groups[box].querySelectorAll("rect")) {
      rect.setAttribute("x", x);
      rect.setAttribute("width", Math.max(wide, 0.1));
    }
    const room = Math.floor((wide - 6) / character);
    const letters = [...labels[label[box]]];
    const said = room < 3 ? "" : letters.length > room ? letters.slice(0, room - 1).join("") + "…" : letters.join("");
    // A narrow box has no text until it is wide.
    const text = groups[box].querySelector("text") ?? (said && groups[box].appendChild(below(groups[box])));
    if (!text) return;
    text.setAttribute("x", x + 3);
    text.textContent = said;
  }

  const below = (group) => element("text", { y: Number(group.querySelector("rect").getAttribute("y")) + 12 });

  function zoom(box) {
    zoomed = box;
    const scale = pixels / width[box];
    const path = callers(box);
    groups.forEach((group, other) => {
      const isCaller = path.has(other);
      const isShown = isCaller || (isWithin(other, box) && other >= box);
      group.classList.toggle("caller", isCaller);
      group.classList.toggle("hidden", !isShown);
      if (isCaller) place(other, margin, pixels);
      else if (isShown) place(other, margin + (left[other] - left[box]) * scale, width[other] * scale);
    });
    say();
  }

  function search(text) {
    found = text;
    let pattern = null;
    try {
      pattern = text && new RegExp(text, "i");
    } catch {
      pattern = new RegExp(text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&"), "i");
    }
    groups.forEach((group, box) => group.classList.toggle("found", Boolean(pattern) && box > 0 && pattern.test(names[box].split("\n", 1)[0])));
    say();
  }

  // Samples through a found box, none twice: a box below a found one is part of it.
  function foundSamples() {
    const covered = groups.map(() => false);
    let sum = 0;
    let boxes = 0;
    groups.forEach((group, box) => {
      const isFound = group.classList.contains("found");
      boxes += isFound;
      covered[box] = isFound || (parent[box] >= 0 && covered[parent[box]]);
      if (isFound && !(parent[box] >= 0 && covered[parent[box]])) sum += samples[box];
    });
    return { sum, boxes };
  }

  function say() {
    const parts = [];
    if (found) {
      const { sum, boxes } = foundSamples();
      parts.push(`"${found}": ${boxes} frames, ${sum} samples, ${((100 * sum) / Math.max(samples[0], 1)).toFixed(2)} %`);
    }
    if (chosen) parts.push(names[chosen].split("\n").join("; "));
    status.textContent = parts.join("  |  ") || summary;
  }

  function choose(box) {
    groups[chosen].classList.remove("chosen");
    chosen = box;
    groups[chosen].classList.add("chosen");
    groups[chosen].querySelector("rect").scrollIntoView?.({ block: "nearest" });
    say();
  }

  const isOpen = (box) => !groups[box].classList.contains("hidden");
  const callees = (box) => parent.flatMap((up, callee) => (up === box && isOpen(callee) ? [callee] : []));
  const neighbour = (step) => {
    const row = callees(parent[chosen]);
    return row[row.indexOf(chosen) + step] ?? chosen;
  };
  const keys = {
    ArrowUp: () => choose(callees(chosen).sort((one, other) => width[other] - width[one])[0] ?? chosen),
    ArrowDown: () => choose(Math.max(parent[chosen], 0)),
    ArrowLeft: () => choose(neighbour(-1)),
    ArrowRight: () => choose(neighbour(1)),
    Enter: () => zoom(chosen),
    Escape: () => reset(),
    "/": () => input.focus(),
  };

  function reset() {
    input.value = "";
    choose(0);
    zoom(0);
    search("");
  }

  const head = document.getElementById("head");
  const wide = margin * 2 + pixels;
  const holder = element("foreignObject", { x: wide - 350, y: 8, width: 250, height: 24 });
  const input = document.createElementNS("http://www.w3.org/1999/xhtml", "input");
  input.setAttribute("placeholder", "search, a regular expression ( / )");
  input.setAttribute("aria-label", "search frames");
  holder.append(input);
  const resetText = element("text", { x: wide - 90, y: 23, role: "button", id: "reset" }, "reset (Esc)");
  head.append(holder, resetText);

  groups.forEach((group, box) => {
    group.addEventListener("click", () => (choose(box), zoom(box)));
    group.addEventListener("mouseenter", () => (status.textContent = names[box].split("\n").join("; ")));
    group.addEventListener("mouseleave", say);
  });
  resetText.addEventListener("click", reset);
  input.addEventListener("input", () => search(input.value));
  document.addEventListener("keydown", (event) => {
    if ((event.ctrlKey || event.metaKey) && event.key === "f") {
      event.preventDefault();
      input.focus();
    } else if (event.target === input ? event.key === "Escape" : keys[event.key] && !event.ctrlKey && !event.metaKey && !event.altKey) {
      event.preventDefault();
      if (event.target === input) input.blur();
      keys[event.key]();
    }
  });

  // A picture higher than the window: the base of the flames is what one sees first, head and status stay in sight.
  const height = svg.viewBox.baseVal.height;
  const backing = document.getElementById("backing");
  function follow() {
    const bottom = Math.min(height, window.scrollY + window.innerHeight);
    head.setAttribute("transform", `translate(0,${Math.max(window.scrollY, 0)})`);
    status.setAttribute("y", bottom - 9);
    backing.setAttribute("y", bottom - 24);
  }
  window.addEventListener("scroll", follow);
  window.addEventListener("resize", follow);
  window.scrollTo(0, height);
  follow();
  svg.focus?.({ preventScroll: true });
})();
