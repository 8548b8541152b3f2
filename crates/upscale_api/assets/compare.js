"use strict";
// The comparison of a task: source and result over each other at the same zoom, a line between them. Opens at 100 %, one
// pixel of the result on one of the screen, where the two differ most. Without this script both pictures just stand
// on the page. Nothing here reads a pixel: the source comes from the customer's own server.

(() => {
  const ZOOM_MAX = 8;
  const GRAB = 24;
  const MODES = [
    ["source", "Source", "The source, each pixel as a square"],
    ["bicubic", "Bicubic", "The source, enlarged smoothly by your browser"],
    ["ours", "Upscaled", "The result alone"],
  ];

  const make = (name, className, attributes = {}) => {
    const element = document.createElement(name);
    element.className = className;
    for (const [key, value] of Object.entries(attributes)) element.setAttribute(key, value);
    return element;
  };
  const clamp = (value, least, most) => Math.min(Math.max(value, least), Math.max(least, most));

  class Comparison {
    constructor(root) {
      this.root = root;
      this.source = root.querySelector(".before img");
      this.result = root.querySelector(".after img");
      this.width = Number(this.result.getAttribute("width"));
      this.height = Number(this.result.getAttribute("height"));
      this.focus = [Number(root.dataset.focusX) / 1000, Number(root.dataset.focusY) / 1000];
      this.line = 0.5;
      this.zoom = 1;
      this.centre = [this.focus[0] * this.width, this.focus[1] * this.height];
      this.pointers = new Map();
      this.build();
      this.listen();
      this.show("bicubic");
      this.draw();
    }

    // ---- what is on the page

    build() {
      this.stage = make("div", "stage", { tabindex: "-1" });
      this.over = make("div", "over");
      this.knob = make("div", "knob", {
        role: "slider", tabindex: "0", "aria-label": "Line between source and result",
        "aria-valuemin": "0", "aria-valuemax": "100", "aria-orientation": "horizontal",
      });
      this.rule = make("div", "rule");
      this.rule.append(this.knob);
      this.labels = ["left", "right"].map((side) => make("span", `label ${side}`, { "aria-hidden": "true" }));
      this.map = make("div", "map", { tabindex: "0", role: "group", "aria-label": "Mini-map: arrow keys move the picture" });
      this.frame = make("div", "frame");
      const small = this.result.cloneNode();
      small.alt = "";
      small.removeAttribute("decoding");
      small.draggable = false;
      this.map.append(small, this.frame);
      for (const picture of [this.source, this.result]) picture.draggable = false;
      this.over.append(this.source);
      this.stage.append(this.result, this.over, this.rule, ...this.labels, this.map);
      this.root.replaceChildren(this.stage, this.buildTools());
      this.root.classList.add("sliding");
    }

    buildTools() {
      const tools = make("div", "tools", { role: "toolbar", "aria-label": "Comparison" });
      const modes = make("div", "modes", { role: "group", "aria-label": "Left of the line" });
      this.modes = MODES.map(([mode, name, title]) => this.button(modes, name, title, () => this.show(mode), mode));
      const zooms = make("div", "modes", { role: "group", "aria-label": "Zoom" });
      this.button(zooms, "−", "Zoom out (−)", () => this.zoomBy(1 / 1.5));
      this.percent = this.button(zooms, "100 %", "One pixel of the result on one of the screen (1)", () => this.zoomTo(1));
      this.percent.classList.add("percent");
      this.button(zooms, "+", "Zoom in (+)", () => this.zoomBy(1.5));
      this.button(zooms, "Fit", "Show the whole picture (0)", () => this.zoomTo(this.fit()));
      this.button(tools, "Full screen", "Full screen (F)", () => this.fill()).classList.add("fill");
      tools.prepend(modes, zooms);
      return tools;
    }

    button(parent, text, title, action, mode) {
      const button = make("button", "tool", { type: "button", title });
      button.textContent = text;
      if (mode) button.dataset.mode = mode;
      button.addEventListener("click", action);
      parent.append(button);
      return button;
    }

    show(mode) {
      this.mode = this.source.hidden ? "ours" : mode;
      this.root.dataset.mode = this.mode;
      for (const button of this.modes) button.setAttribute("aria-pressed", String(button.dataset.mode === this.mode));
      const name = MODES.find(([one]) => one === this.mode)[1];
      this.labels[0].textContent = this.mode === "ours" ? "" : name;
      this.labels[1].textContent = "Upscaled";
      this.draw();
    }

    /** Without the source there is one picture to look at: it zooms and pans all the same. */
    sourceIsGone() {
      this.source.hidden = true;
      for (const button of this.modes) button.hidden = true;
      this.show("ours");
    }

    // ---- geometry: zoom in pixels of the screen for one of the result; the centre in pixels of the result

    scale() { return this.zoom / (window.devicePixelRatio || 1); }

    fit() {
      const [width, height] = this.size();
      return Math.min(width / this.width, height / this.height) * (window.devicePixelRatio || 1);
    }

    size() { return [this.stage.clientWidth || 1, this.stage.clientHeight || 1]; }

    draw() {
      const [width, height] = this.size();
      this.zoom = clamp(this.zoom, Math.min(this.fit(), 1), ZOOM_MAX);
      const scale = this.scale();
      const side = (centre, whole, seen) => whole * scale <= seen ? whole / 2
        : clamp(centre, seen / 2 / scale, whole - seen / 2 / scale);
      this.centre = [side(this.centre[0], this.width, width), side(this.centre[1], this.height, height)];
      // Whole pixels of the screen: half ones would blur what is to be judged.
      const left = Math.round(width / 2 - this.centre[0] * scale);
      const top = Math.round(height / 2 - this.centre[1] * scale);
      for (const picture of [this.source, this.result]) {
        picture.style.width = `${this.width * scale}px`;
        picture.style.height = `${this.height * scale}px`;
        picture.style.transform = `translate(${left}px, ${top}px)`;
      }
      const line = Math.round(this.line * width);
      this.over.style.clipPath = `inset(0 ${width - line}px 0 0)`;
      this.rule.style.transform = `translateX(${line}px)`;
      const percent = Math.round(this.line * 100);
      this.knob.setAttribute("aria-valuenow", String(percent));
      this.knob.setAttribute("aria-valuetext", `${percent} percent source, ${100 - percent} percent result`);
      this.percent.textContent = `${Math.round(this.zoom * 100)} %`;
      this.root.dataset.zoom = String(Math.round(this.zoom * 1000) / 10);
      this.drawMap(left, top, width, height, scale);
    }

    drawMap(left, top, width, height, scale) {
      const isWhole = this.width * scale <= width + 1 && this.height * scale <= height + 1;
      this.map.hidden = isWhole;
      if (isWhole) return;
      const share = (value) => `${clamp(value, 0, 1) * 100}%`;
      const [wide, high] = [this.width * scale, this.height * scale];
      this.frame.style.left = share(-left / wide);
      this.frame.style.top = share(-top / high);
      this.frame.style.width = share(width / wide);
      this.frame.style.height = share(height / high);
    }

    /** Zooms with the point of the picture that lies at these coordinates of the stage held still. */
    zoomTo(zoom, at = this.size().map((side) => side / 2)) {
      const [width, height] = this.size();
      const before = this.scale();
      const held = [this.centre[0] + (at[0] - width / 2) / before, this.centre[1] + (at[1] - height / 2) / before];
      this.zoom = clamp(zoom, Math.min(this.fit(), 1), ZOOM_MAX);
      const after = this.scale();
      this.centre = [held[0] - (at[0] - width / 2) / after, held[1] - (at[1] - height / 2) / after];
      this.draw();
    }

    zoomBy(factor, at) { this.zoomTo(this.zoom * factor, at); }

    panBy(across, down) {
      this.centre = [this.centre[0] - across / this.scale(), this.centre[1] - down / this.scale()];
      this.draw();
    }

    moveLine(share) {
      this.line = clamp(share, 0, 1);
      this.draw();
    }

    canPan() {
      const [width, height] = this.size();
      return this.width * this.scale() > width + 1 || this.height * this.scale() > height + 1;
    }

    // ---- what people do

    listen() {
      const gone = () => this.sourceIsGone();
      if (this.source.complete && this.source.naturalWidth === 0) gone(); else this.source.addEventListener("error", gone);
      this.stage.addEventListener("wheel", (event) => this.onWheel(event), { passive: false });
      this.stage.addEventListener("pointerdown", (event) => this.onDown(event));
      this.stage.addEventListener("pointermove", (event) => this.onMove(event));
      for (const name of ["pointerup", "pointercancel"]) this.stage.addEventListener(name, (event) => this.onUp(event));
      this.map.addEventListener("pointerdown", (event) => this.onMap(event));
      this.map.addEventListener("pointermove", (event) => { if (event.buttons) this.onMap(event); });
      this.root.addEventListener("keydown", (event) => this.onKey(event));
      document.addEventListener("keydown", (event) => {
        const isTyping = event.target.closest("input, textarea, select, [contenteditable]");
        const isOther = event.ctrlKey || event.metaKey || event.altKey || isTyping || !this.root.isConnected;
        if (!isOther && event.key.toLowerCase() === "f") { event.preventDefault(); this.fill(); }
        if (event.key === "Escape") this.root.classList.remove("filling");
      });
      new ResizeObserver(() => this.draw()).observe(this.stage);
    }

    at(event) {
      const box = this.stage.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    }

    onWheel(event) {
      const lines = event.deltaMode === 1 ? 16 : 1;
      // A trackpad's pinch comes as a wheel with Ctrl, in smaller steps.
      const factor = Math.exp(-event.deltaY * lines * (event.ctrlKey ? 0.01 : 0.002));
      const isEnd = factor < 1 ? this.zoom <= Math.min(this.fit(), 1) + 0.001 : this.zoom >= ZOOM_MAX;
      // At the end of the range the page scrolls on.
      if (isEnd && !event.ctrlKey) return;
      event.preventDefault();
      this.zoomBy(factor, this.at(event));
    }

    onDown(event) {
      if (event.button !== 0 || event.target.closest(".map")) return;
      const at = this.at(event);
      this.stage.setPointerCapture(event.pointerId);
      this.pointers.set(event.pointerId, at);
      const isOnLine = this.mode !== "ours" && Math.abs(at[0] - this.line * this.size()[0]) <= GRAB;
      const moves = this.mode !== "ours" && (isOnLine || event.shiftKey || !this.canPan());
      this.drag = { moves, from: at, moved: this.pointers.size > 1 };
      if (moves) this.knob.focus({ preventScroll: true }); else this.stage.focus({ preventScroll: true });
      this.root.classList.toggle("panning", !moves);
      if (moves && !isOnLine) this.moveLine(at[0] / this.size()[0]);
      event.preventDefault();
    }

    onMove(event) {
      const last = this.pointers.get(event.pointerId);
      if (!last) return;
      const at = this.at(event);
      if (this.pointers.size === 2) {
        const other = [...this.pointers].find(([id]) => id !== event.pointerId)[1];
        const apart = (one) => Math.max(Math.hypot(one[0] - other[0], one[1] - other[1]), 1);
        const middle = [(at[0] + other[0]) / 2, (at[1] + other[1]) / 2];
        this.panBy((at[0] - last[0]) / 2, (at[1] - last[1]) / 2);
        this.zoomBy(apart(at) / apart(last), middle);
        this.drag.moved = true;
      } else {
        this.drag.moved ||= Math.hypot(at[0] - this.drag.from[0], at[1] - this.drag.from[1]) > 4;
        if (this.drag.moves) this.moveLine(at[0] / this.size()[0]);
        else if (this.drag.moved) this.panBy(at[0] - last[0], at[1] - last[1]);
      }
      this.pointers.set(event.pointerId, at);
    }

    onUp(event) {
      if (!this.pointers.delete(event.pointerId) || this.pointers.size > 0) return;
      this.root.classList.remove("panning");
      // A click beside the line brings the line there.
      if (event.type === "pointerup" && !this.drag.moved && !this.drag.moves && this.mode !== "ours") {
        this.moveLine(this.at(event)[0] / this.size()[0]);
      }
    }

    onMap(event) {
      const box = this.map.getBoundingClientRect();
      this.centre = [(event.clientX - box.left) / box.width * this.width, (event.clientY - box.top) / box.height * this.height];
      this.draw();
      event.preventDefault();
    }

    onKey(event) {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const step = event.shiftKey ? 0.1 : 0.01;
      const isMap = event.target === this.map;
      const [width, height] = this.size().map((side) => side / 8);
      const keys = {
        ArrowLeft: () => isMap ? this.panBy(width, 0) : this.moveLine(this.line - step),
        ArrowRight: () => isMap ? this.panBy(-width, 0) : this.moveLine(this.line + step),
        ArrowUp: () => isMap ? this.panBy(0, height) : this.moveLine(this.line + step),
        ArrowDown: () => isMap ? this.panBy(0, -height) : this.moveLine(this.line - step),
        Home: () => this.moveLine(0),
        End: () => this.moveLine(1),
        "+": () => this.zoomBy(1.5),
        "=": () => this.zoomBy(1.5),
        "-": () => this.zoomBy(1 / 1.5),
        0: () => this.zoomTo(this.fit()),
        1: () => this.zoomTo(1),
      };
      if (!Object.hasOwn(keys, event.key)) return;
      event.preventDefault();
      keys[event.key]();
    }

    /** Phones without the full-screen interface get the whole window. */
    async fill() {
      if (document.fullscreenElement) { await document.exitFullscreen(); return; }
      try {
        await this.root.requestFullscreen();
      } catch {
        this.root.classList.toggle("filling");
      }
      this.draw();
    }
  }

  const begin = (root) => {
    for (const compare of root.querySelectorAll("[data-compare]:not(.sliding)")) new Comparison(compare);
  };
  begin(document);
  document.addEventListener("upscale:shown", (event) => begin(event.target));
})();
