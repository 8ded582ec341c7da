"use strict";
// The page requests itself again while it is visible, and takes over what has changed. What has not
// changed keeps its focus and selection.
(() => {
  const every = 2000, patience = 10000;
  const live = document.getElementById("live"), connection = document.getElementById("connection");
  let last = new Date(), timer = 0, asking = false;

  function show(text, lost) {
    if (connection.textContent !== text) connection.textContent = text;
    connection.className = lost ? "lost" : "";
  }

  const key = (node) => (node && node.nodeType === Node.ELEMENT_NODE && node.dataset.key) || "";

  function sameAttributes(have, want) {
    for (const { name } of [...have.attributes]) if (!want.hasAttribute(name)) have.removeAttribute(name);
    for (const { name, value } of want.attributes) if (have.getAttribute(name) !== value) have.setAttribute(name, value);
  }

  function become(have, want) {
    if (have.nodeType === Node.TEXT_NODE) {
      if (have.data !== want.data) have.data = want.data;
      return;
    }
    sameAttributes(have, want);
    const keyed = new Map();
    for (const child of have.children) if (key(child)) keyed.set(key(child), child);
    let at = have.firstChild;
    for (const child of [...want.childNodes]) {
      let found = key(child) ? keyed.get(key(child)) : at;
      if (!found || found.nodeName !== child.nodeName || key(found) !== key(child)) {
        have.insertBefore(document.importNode(child, true), at);
        continue;
      }
      if (found === at) at = at.nextSibling;
      else have.insertBefore(found, at);
      become(found, child);
    }
    while (at) {
      const rest = at.nextSibling;
      at.remove();
      at = rest;
    }
  }

  async function update() {
    clearTimeout(timer);
    if (document.hidden || asking) return; // the next update comes when the page is visible or has its response
    asking = true;
    try {
      const answer = await fetch(location.href, {
        cache: "no-store", headers: { Accept: "text/html" }, signal: AbortSignal.timeout(patience),
      });
      const fresh = new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("live");
      if (!fresh) throw new Error(`the answer was ${answer.status} ${answer.statusText}`);
      become(live, fresh);
      last = new Date();
      show("Live", false);
    } catch (err) {
      show(`Not updated since ${last.toLocaleTimeString()}: ${err.message}`, true);
    }
    asking = false;
    timer = setTimeout(update, every);
  }

  document.addEventListener("visibilitychange", update);
  show("Live", false);
  timer = setTimeout(update, every);
})();
