"use strict";
// The page updates itself every second while it is visible.
(() => {
  const state = document.getElementById("state");
  let last = new Date();
  async function update() {
    if (!document.hidden) {
      try {
        const response = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(10000) });
        const fresh = new DOMParser().parseFromString(await response.text(), "text/html").getElementById("live");
        if (!fresh) throw new Error(`the server responded with ${response.status}`);
        document.getElementById("live").replaceWith(fresh);
        last = new Date();
        state.textContent = "Live";
        state.className = "";
      } catch (err) {
        state.textContent = `Not updated since ${last.toLocaleTimeString()}: ${err.message}`;
        state.className = "lost";
      }
    }
    setTimeout(update, 1000);
  }
  state.textContent = "Live";
  setTimeout(update, 1000);
})();
