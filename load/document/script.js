// Tooltips and an enlarged view. The page says everything
// without this script, too.
(() => {
  "use strict";
  const tip = document.getElementById("tip");
  const zoom = document.getElementById("zoom");
  const stage = zoom.querySelector(".stage");

  // Tooltips: the <title> of a mark, shown at once and in the page's style.
  for (const title of document.querySelectorAll(".tip > title")) {
    title.parentNode.dataset.tip = title.textContent;
    title.remove();
  }
  for (const title of document.querySelectorAll("svg.chart > title")) {
    title.parentNode.setAttribute("aria-label", title.textContent);
    title.remove();
  }

  const place = (x, y) => {
    const box = tip.getBoundingClientRect();
    const left = Math.min(Math.max(8, x + 14), innerWidth - box.width - 8);
    const top = y + 18 + box.height > innerHeight ? y - box.height - 12 : y + 18;
    tip.style.transform = `translate(${left}px, ${Math.max(4, top)}px)`;
  };
  document.addEventListener("pointerover", (e) => {
    const mark = e.target.closest?.("[data-tip]");
    tip.hidden = !mark;
    if (!mark) return;
    const home = zoom.open ? zoom : document.body; // a dialog lies above everything else
    if (tip.parentNode !== home) home.append(tip);
    tip.textContent = mark.dataset.tip;
    place(e.clientX, e.clientY);
  });
  document.addEventListener("pointermove", (e) => { if (!tip.hidden) place(e.clientX, e.clientY); });
  document.addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });

  // A chart, enlarged: the wheel zooms about the pointer, dragging moves.
  const enlarge = (chart) => {
    const svg = chart.cloneNode(true);
    const full = svg.getAttribute("viewBox").split(" ").map(Number);
    let view = [...full];
    const show = () => svg.setAttribute("viewBox", view.map((v) => v.toFixed(2)).join(" "));
    const at = (e) => {
      const p = new DOMPoint(e.clientX, e.clientY).matrixTransform(svg.getScreenCTM().inverse());
      return [p.x, p.y];
    };
    svg.addEventListener("wheel", (e) => {
      e.preventDefault();
      const [x, y] = at(e);
      const width = Math.min(full[2], Math.max(full[2] / 12, view[2] * Math.exp(e.deltaY * 0.002)));
      const k = width / view[2];
      view = [x - (x - view[0]) * k, y - (y - view[1]) * k, width, view[3] * k];
      if (width === full[2]) view = [...full];
      show();
    }, { passive: false });
    let from = null;
    svg.addEventListener("pointerdown", (e) => { from = at(e); svg.setPointerCapture(e.pointerId); });
    svg.addEventListener("pointermove", (e) => {
      if (!from) return;
      const [x, y] = at(e);
      view[0] += from[0] - x;
      view[1] += from[1] - y;
      show();
    });
    svg.addEventListener("pointerup", () => { from = null; });
    svg.addEventListener("dblclick", () => { view = [...full]; show(); });
    stage.replaceChildren(svg);
    zoom.querySelector("b").textContent = chart.getAttribute("aria-label");
    zoom.showModal();
  };
  for (const chart of document.querySelectorAll("figure > svg.chart")) {
    const button = document.createElement("button");
    button.className = "enlarge";
    button.type = "button";
    button.textContent = "⤢";
    button.setAttribute("aria-label", `Enlarge: ${chart.getAttribute("aria-label")}`);
    button.addEventListener("click", () => enlarge(chart));
    chart.previousElementSibling.append(button); // the caption
  }
  zoom.addEventListener("close", () => { stage.replaceChildren(); tip.hidden = true; document.body.append(tip); });
})();
