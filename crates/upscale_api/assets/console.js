"use strict";
// What pages do beyond what they show: copy a text, slide between two pictures, watch a task. Every page works without.

for (const button of document.querySelectorAll("[data-copy]")) {
  button.addEventListener("click", async () => {
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
  });
}

for (const compare of document.querySelectorAll("[data-compare]")) {
  const handle = compare.querySelector(".handle");
  const before = compare.querySelector(".before");
  const move = () => {
    compare.style.setProperty("--shown", `${handle.value / 10}%`);
    handle.setAttribute("aria-valuetext", `${Math.round(100 - handle.value / 10)} percent result`);
  };
  const begin = () => {
    compare.classList.add("sliding");
    handle.hidden = false;
    move();
  };
  handle.addEventListener("input", move);
  const source = before.querySelector("img");
  const gone = () => { before.hidden = true; handle.hidden = true; compare.classList.remove("sliding"); };
  if (source.complete) {
    if (source.naturalWidth > 0) begin(); else gone();
  } else {
    source.addEventListener("load", begin);
    source.addEventListener("error", gone);
  }
}

for (const watched of document.querySelectorAll("[data-watch]")) {
  // Soon at first, then less often: a payment may take longer than a task.
  let wait = 1000;
  const look = async () => {
    wait = Math.min(wait * 1.5, 4000);
    try {
      const answer = await fetch(watched.dataset.watch, { headers: { accept: "application/json" } });
      if (answer.ok && (await answer.json()).state !== "processing") {
        location.reload();
        return;
      }
    } catch {
      // The network may come back.
    }
    setTimeout(look, wait);
  };
  setTimeout(look, wait);
}

for (const menu of document.querySelectorAll("details.menu")) {
  menu.addEventListener("keydown", (event) => {
    if (event.key === "Escape") {
      menu.open = false;
      menu.querySelector("summary").focus();
    }
  });
}
