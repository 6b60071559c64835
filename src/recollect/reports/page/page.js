"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const tip = document.getElementById("tip");

  // Round numbers within [low, high].
  const ticks = (low, high, most) => {
    const raw = (high - low) / most;
    const magnitude = 10 ** Math.floor(Math.log10(raw));
    const step = [1, 2, 2.5, 5, 10].map((m) => m * magnitude).find((s) => s >= raw * 0.999);
    const found = [];
    for (let i = Math.ceil(low / step - 1e-9); i * step <= high + 1e-9 * step; i++)
      found.push(Number((i * step).toPrecision(12)));
    return found;
  };
  const visible = (elements) => elements.filter((element) => !element.hasAttribute("hidden"));

  // Bars keep their 0 and fill the width with what is shown.
  const bars = [];
  const readBars = (root) => {
    const [low, high] = [Number(root.dataset.low), Number(root.dataset.high)];
    const value = (percent) => low + (parseFloat(percent) / 100) * (high - low);
    const parts = all("li", root).map((row) => ({
      row,
      marks: all("em, s, u", row).map((mark) => ({
        mark,
        from: value(mark.style.left),
        to: value(parseFloat(mark.style.left) + (parseFloat(mark.style.width) || 0)),
      })),
    }));
    return { root, parts, scale: root.querySelector(".scale > div") };
  };
  const rescaleBars = ({ root, parts, scale }) => {
    const shown = parts.filter(({ row }) => !row.hasAttribute("hidden"));
    const ends = shown.flatMap(({ marks }) => marks.flatMap(({ from, to }) => [from, to]));
    if (!ends.length) return;
    let [low, high] = [Math.min(0, ...ends), Math.max(0, ...ends)];
    if (low === high) high = low + 1;
    const room = 0.02 * (high - low);
    if (low < 0) low -= room;
    if (high > 0) high += room;
    const place = (at) => (100 * (at - low)) / (high - low);
    for (const { marks } of shown)
      for (const { mark, from, to } of marks) {
        mark.style.left = `${place(from)}%`;
        if (mark.tagName !== "U") mark.style.width = `${place(to) - place(from)}%`;
      }
    scale.replaceChildren(...ticks(low, high, 4).map((tick) => {
      const mark = document.createElement("i");
      mark.style.left = `${place(tick)}%`;
      mark.append(Object.assign(document.createElement("b"), { textContent: tick.toLocaleString("en") }));
      return mark;
    }));
  };

  // Lines of shares fill the height; the shapes stay, the window onto them moves.
  const rescalePlot = (plot) => {
    const top = Number(plot.dataset.top);
    const shown = visible(all("g[data-low]", plot));
    if (!shown.length) return;
    let low = Math.min(...shown.map((line) => Number(line.dataset.low)));
    let high = Math.max(...shown.map((line) => Number(line.dataset.high)));
    const room = Math.max(0.04 * (high - low), 0.005);
    [low, high] = [Math.max(0, low - room), Math.min(top, high + room)];
    const svg = plot.querySelector("svg");
    const down = (at) => 1000 * (1 - at / top);
    svg.setAttribute("viewBox", `0 ${down(high)} 1000 ${down(low) - down(high)}`);
    for (const old of all(".rule", svg)) old.remove();
    for (const old of all(".y", plot)) old.remove();
    const labels = plot.querySelector(".ticks");
    for (const tick of ticks(low, high, 5)) {
      const rule = document.createElementNS("http://www.w3.org/2000/svg", "line");
      const sides = { class: "rule", x1: 0, x2: 1000, y1: down(tick), y2: down(tick) };
      for (const [key, side] of Object.entries(sides)) rule.setAttribute(key, side);
      svg.prepend(rule);
      const label = document.createElement("span");
      label.className = "y";
      label.style.top = `${(100 * (high - tick)) / (high - low)}%`;
      label.textContent = Number((100 * tick).toPrecision(6)).toLocaleString("en");
      labels.append(label);
    }
  };
  const rescale = () => {
    bars.forEach(rescaleBars);
    all(".plot[data-top]").forEach(rescalePlot);
  };

  // Filters: a switch hides everything that belongs to its method or benchmark.
  const off = { method: new Set(), benchmark: new Set() };
  const isOff = (element) =>
    off.method.has(element.dataset.method) || off.benchmark.has(element.dataset.of);
  const apply = () => {
    for (const element of all("[data-method]")) element.toggleAttribute("hidden", isOff(element));
    for (const element of all("[data-benchmark]"))
      element.hidden = off.benchmark.has(element.dataset.benchmark);
    for (const kind of ["method", "benchmark"])
      for (const button of all(`[data-toggle-${kind}]`)) {
        const name = button.getAttribute(`data-toggle-${kind}`);
        button.setAttribute("aria-pressed", String(!off[kind].has(name)));
      }
    rescale();
  };
  for (const kind of ["method", "benchmark"])
    for (const button of all(`[data-toggle-${kind}]`))
      button.addEventListener("click", () => {
        const name = button.getAttribute(`data-toggle-${kind}`);
        if (!off[kind].delete(name)) off[kind].add(name);
        apply();
      });
  document.getElementById("show-all").addEventListener("click", () => {
    off.method.clear();
    off.benchmark.clear();
    apply();
  });

  // Differences against another method: all of them are on the page, one is shown.
  const compare = (select) => {
    for (const element of all("[data-against]", select.closest("[data-benchmark]")))
      element.hidden = element.dataset.against !== select.value;
  };
  for (const select of all("select[data-reference]"))
    select.addEventListener("change", async () => {
      const section = select.closest("[data-benchmark]");
      await Promise.all(all('[data-when="chosen"]', section).map(unpack));
      compare(select);
    });

  // What the pointer or the arrow keys are at.
  const place = (x, y) => {
    const { width, height } = tip.getBoundingClientRect();
    const left = x + 14 + width > innerWidth ? x - 14 - width : x + 14;
    const top = y + 14 + height > innerHeight ? y - 14 - height : y + 14;
    tip.style.left = `${Math.max(4, left)}px`;
    tip.style.top = `${Math.max(4, top)}px`;
  };
  const show = (text, x, y) => {
    if (tip.textContent !== text) tip.textContent = text;
    tip.hidden = false;
    place(x, y);
  };
  const hide = () => { tip.hidden = true; };
  const tellTip = (element) => {
    element.addEventListener("pointermove", (event) =>
      show(element.dataset.tip, event.clientX, event.clientY));
    element.addEventListener("pointerleave", hide);
  };

  const tellPlot = (plot) => {
    const content = JSON.parse(plot.dataset.plot);
    const cross = plot.querySelector(".cross");
    let index = content.x.length - 1;
    const look = (to, x, y) => {
      index = Math.min(Math.max(to, 0), content.x.length - 1);
      cross.setAttribute("x1", content.at[index] * 10);
      cross.setAttribute("x2", content.at[index] * 10);
      cross.style.visibility = "visible";
      const lines = content.series
        .filter((series) => !off.method.has(series.method))
        .map((series) => (series.label ? `${series.label}: ` : "") + series.shown[index]);
      show([`${content.x[index].toLocaleString("en")} ${content.unit}`, ...lines].join("\n"), x, y);
    };
    const leave = () => { cross.style.visibility = "hidden"; hide(); };
    const nearest = (share) => content.at
      .map((at, i) => [Math.abs(at - share), i])
      .reduce((best, next) => (next[0] < best[0] ? next : best))[1];
    plot.addEventListener("pointermove", (event) => {
      const box = plot.getBoundingClientRect();
      look(nearest((100 * (event.clientX - box.left)) / box.width), event.clientX, event.clientY);
    });
    plot.addEventListener("pointerleave", leave);
    plot.addEventListener("blur", leave);
    plot.addEventListener("keydown", (event) => {
      const to = { ArrowLeft: index - 1, ArrowRight: index + 1, Home: 0, End: Infinity }[event.key];
      if (event.key === "Escape") leave();
      if (to === undefined) return;
      event.preventDefault();
      const box = plot.getBoundingClientRect();
      look(to, box.left + (content.at[Math.min(Math.max(to, 0), content.at.length - 1)] / 100) * box.width, box.top);
    });
  };

  // A link to a folded place opens it.
  const unfold = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.tagName === "DETAILS") target.open = true;
  };

  const copies = (button) =>
    button.addEventListener("click", async () => {
      try {
        await navigator.clipboard.writeText(button.dataset.copy);
        button.textContent = "Copied";
      } catch {
        // A page opened from a file may be refused the clipboard: select the text instead.
        getSelection().selectAllChildren(button.previousElementSibling);
        button.textContent = "Selected";
      }
      setTimeout(() => { button.textContent = "Copy"; }, 1500);
    });

  // Give everything inside a root its life: at first the page, later what is unpacked.
  const prepare = (root) => {
    bars.push(...all(".bars", root).map(readBars));
    all("[data-tip]", root).forEach(tellTip);
    all("[data-plot]", root).forEach(tellPlot);
    all("[data-copy]", root).forEach(copies);
    all("[data-packed]", root).forEach(whenWanted);
  };

  // Large parts are compressed, and unpacked when somebody comes near or asks for them.
  const unpack = async (place) => {
    if (!place.dataset.packed) return;
    const bytes = Uint8Array.from(atob(place.dataset.packed), (letter) => letter.charCodeAt(0));
    delete place.dataset.packed;
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
    place.innerHTML = await new Response(stream).text();
    delete place.dataset.when;
    prepare(place);
    apply();
  };
  const near = new IntersectionObserver((entries) => {
    for (const { isIntersecting, target } of entries)
      if (isIntersecting) {
        near.unobserve(target);
        unpack(target);
      }
  }, { rootMargin: "800px" });
  const whenWanted = (place) => {
    if (place.dataset.when === "seen") near.observe(place);
    if (place.dataset.when === "opened")
      place.closest("details").addEventListener("toggle", () => unpack(place), { once: true });
  };

  prepare(document);
  rescale();
  addEventListener("hashchange", unfold);
  unfold();
})();
