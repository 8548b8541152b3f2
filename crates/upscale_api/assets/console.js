"use strict";
// What pages do beyond what they show: copy a text, watch a task, keep figures fresh, look at a picture before it is
// ordered. Every page works without. The comparison of pictures is compare.js.

(() => {
  const copy = async (button) => {
    const text = document.getElementById(button.dataset.copy).textContent;
    const said = button.textContent;
    try {
      await navigator.clipboard.writeText(text);
      button.textContent = "Copied";
    } catch {
      // Without a secure context there is no clipboard: the text is selected, so that Ctrl+C takes it.
      getSelection().selectAllChildren(document.getElementById(button.dataset.copy));
      button.textContent = "Selected";
    }
    setTimeout(() => { button.textContent = said; }, 2000);
  };

  /** The page again, and of it what may change: nothing else moves, and nothing that is in use. False when signed out. */
  const refresh = async () => {
    const answer = await fetch(location.href, { headers: { accept: "text/html" } });
    if (!answer.ok || answer.redirected) return false;
    const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const old of document.querySelectorAll("[data-live]")) {
      const now = fresh.querySelector(`[data-live="${CSS.escape(old.dataset.live)}"]`);
      const isBusy = old.contains(document.activeElement) || old.contains(getSelection().anchorNode) && !getSelection().isCollapsed;
      if (!now || now.isEqualNode(old.shown ?? old) || isBusy) continue;
      const open = [...old.querySelectorAll("details")].map((details) => details.open);
      const shown = document.importNode(now, true);
      shown.querySelectorAll("details").forEach((details, at) => { details.open ||= open[at] ?? false; });
      shown.shown = now;
      old.replaceWith(shown);
      begin(shown);
      shown.dispatchEvent(new CustomEvent("upscale:shown", { bubbles: true }));
    }
    return true;
  };

  const keepFresh = () => {
    const seconds = Number(document.querySelector("[data-refresh]")?.dataset.refresh);
    if (!seconds) return;
    setTimeout(async () => {
      try {
        // A page in the background is not read; it is fresh again when it is shown.
        if (document.visibilityState === "visible" && !(await refresh())) return;
      } catch {
        // The network may come back.
      }
      keepFresh();
    }, seconds * 1000);
  };

  const watch = (watched) => {
    // The answer about a task is held back until it is over. Others come at once: soon asked for at first, then less
    // often, for a payment may take longer than a task.
    let wait = 700;
    const look = async () => {
      wait = Math.min(wait * 1.4, 4000);
      if (!watched.isConnected) return;
      let isHeld = false;
      try {
        const headers = { accept: "application/json", prefer: "wait=10" };
        const answer = await fetch(watched.dataset.watch, { headers });
        if (answer.ok && (await answer.json()).state !== "processing") {
          document.activeElement?.blur();
          if (!watched.closest("[data-live]") || !(await refresh()) || watched.isConnected) location.reload();
          return;
        }
        isHeld = answer.headers.has("preference-applied");
      } catch {
        // The network may come back.
      }
      setTimeout(look, isHeld ? 0 : wait);
    };
    look();
  };

  /** Says what the picture is and whether it fits what is chosen. */
  const preview = (figure) => {
    const picture = figure.querySelector("img");
    const says = figure.querySelector("[data-says]");
    const form = figure.closest("form");
    const say = () => {
      const [width, height] = [picture.naturalWidth, picture.naturalHeight];
      if (!width) return;
      const scale = Number(form.querySelector("[name=scale]:checked")?.value ?? 2);
      const faces = form.querySelector("[name=face_enhance]").checked;
      const most = Number(figure.getAttribute(`data-caps-${scale}`).split(" ")[faces ? 1 : 0]);
      const fits = width * height <= most;
      const megapixels = (pixels) => (pixels / 1e6).toFixed(2);
      says.textContent = `${width} × ${height} → ${width * scale} × ${height * scale} pixels. ` + (fits
        ? `${megapixels(width * height)} MP fits: up to ${megapixels(most)} MP.`
        : `Too large: ${megapixels(width * height)} MP, and at most ${megapixels(most)} MP can be upscaled so.`);
      says.classList.toggle("problem", !fits);
    };
    form.addEventListener("change", say);
    picture.addEventListener("load", say);
    picture.addEventListener("error", () => { says.textContent = "Your browser could not load this image. The service may still be able to."; });
    say();
  };

  const begin = (root) => {
    for (const button of root.querySelectorAll("[data-copy]")) button.addEventListener("click", () => copy(button));
    for (const watched of root.querySelectorAll("[data-watch]")) watch(watched);
    for (const figure of root.querySelectorAll("[data-preview]")) preview(figure);
    for (const menu of root.querySelectorAll("details.menu")) {
      menu.addEventListener("keydown", (event) => {
        if (event.key !== "Escape") return;
        menu.open = false;
        menu.querySelector("summary").focus();
      });
    }
  };

  begin(document);
  keepFresh();
  const address = document.getElementById("image_url");
  const look = document.getElementById("preview");
  // What is pasted is whole: it is shown at once. What is typed waits for Enter.
  if (address && look) address.addEventListener("paste", () => setTimeout(() => address.form.requestSubmit(look)));
})();
