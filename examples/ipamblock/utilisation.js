"use strict";
// The page asks for itself again every second, while somebody can see it.
(() => {
  const told = document.getElementById("told");
  let last = new Date();
  async function update() {
    if (!document.hidden) {
      try {
        const answer = await fetch(location.href, { cache: "no-store", signal: AbortSignal.timeout(10000) });
        const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("live");
        if (!fresh) throw new Error(`the answer was ${answer.status}`);
        document.getElementById("live").replaceWith(fresh);
        last = new Date();
        told.textContent = "Live";
        told.className = "";
      } catch (err) {
        told.textContent = `Not updated since ${last.toLocaleTimeString()}: ${err.message}`;
        told.className = "lost";
      }
    }
    setTimeout(update, 1000);
  }
  told.textContent = "Live";
  setTimeout(update, 1000);
})();
