"use strict";
(() => {
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const tip = document.getElementById("tip");

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
  for (const select of all("select[data-reference]"))
    select.addEventListener("change", () => {
      const section = select.closest("[data-benchmark]");
      for (const element of all("[data-against]", section))
        element.hidden = element.dataset.against !== select.value;
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
  for (const element of all("[data-tip]")) {
    element.addEventListener("pointermove", (event) =>
      show(element.dataset.tip, event.clientX, event.clientY));
    element.addEventListener("pointerleave", hide);
  }

  for (const plot of all("[data-plot]")) {
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
  }

  // A link to a folded place opens it.
  const unfold = () => {
    const target = location.hash && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (target && target.tagName === "DETAILS") target.open = true;
  };
  addEventListener("hashchange", unfold);
  unfold();

  for (const button of all("[data-copy]"))
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
})();
