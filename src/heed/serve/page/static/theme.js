// The chosen theme, before the page is drawn, so that it never flashes in the other one.
try {
  const chosen = localStorage.getItem("heed.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
} catch {
  // The browser keeps nothing for this page: the theme is that of the system.
}
