"use strict";
// Puts updates of sections in place, keeping what did not change: a selection, the
// focus and an opened menu stay. It knows nothing of what the sections say.
(() => {
  const link = document.getElementById("link"), button = document.getElementById("pause");
  let source = null, paused = false, over = false, alive = 0;

  const say = (text, state) => {
    link.textContent = text;
    link.className = state;
    document.body.classList.toggle("gone", state === "off");
  };

  // What is shown is old from now on.
  const lose = (why) => {
    if (!document.body.classList.contains("gone")) say(`${why} since ${new Date().toISOString().slice(11, 19)} UTC: the process may be gone. As of`, "off");
  };

  const sync = (old, fresh) => {
    if (old.nodeName !== fresh.nodeName) {
      old.replaceWith(fresh);
      return;
    }
    if (old.nodeType === Node.TEXT_NODE) {
      if (old.data !== fresh.data) old.data = fresh.data;
      return;
    }
    for (const a of [...old.attributes]) if (!fresh.hasAttribute(a.name)) old.removeAttribute(a.name);
    for (const a of fresh.attributes) if (old.getAttribute(a.name) !== a.value) old.setAttribute(a.name, a.value);
    const had = [...old.childNodes], has = [...fresh.childNodes];
    has.forEach((n, i) => i < had.length ? sync(had[i], n) : old.append(n));
    had.slice(has.length).forEach((n) => n.remove());
  };

  const update = (event) => {
    for (const [id, html] of Object.entries(JSON.parse(event.data))) {
      const old = document.getElementById(id), fresh = new DOMParser().parseFromString(html, "text/html").body.firstElementChild;
      if (old && fresh) sync(old, fresh);
    }
    say("live,", "on");
    expect();
  };

  // An update comes every second. A network that fails says nothing.
  const expect = () => {
    clearTimeout(alive);
    alive = setTimeout(() => {
      if (!source) return;
      lose("no news");
      close();
      open();
    }, 5000);
  };

  const close = () => {
    if (source) source.close();
    source = null;
  };

  // A page that is not seen is not a reader.
  const open = () => {
    if (source || paused || over || document.hidden) return;
    source = new EventSource("?events");
    expect();
    source.addEventListener("update", update);
    source.addEventListener("end", () => {
      over = true;
      close();
      button.hidden = true;
      say("closed, as of", "");
    });
    source.onerror = () => {
      if (!source) return;
      if (source.readyState !== EventSource.CLOSED) return lose("no connection");
      source = null;
      fetch(location.href, {method: "HEAD"}).then((r) => r.ok ? say("too many readers: not live, as of", "off") : lose(`status ${r.status}`), () => lose("no connection"));
      setTimeout(open, 10000);
    };
  };

  button.hidden = false;
  button.addEventListener("click", () => {
    paused = !paused;
    button.textContent = paused ? "Resume" : "Pause";
    if (paused) {
      close();
      say("paused, as of", "");
    } else open();
  });
  document.addEventListener("visibilitychange", () => document.hidden ? close() : open());
  open();
})();
