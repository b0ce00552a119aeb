// Before the first paint: the colours that the reader chose. A plain script in the head, so that nothing flashes.
(() => {
  try {
    const chosen = localStorage.getItem("theme");
    if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
  } catch {
    /* storage may be switched off: then as the system */
  }
  document.documentElement.classList.add("scripted");
})();
