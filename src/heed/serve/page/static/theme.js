// The chosen theme, before the page is drawn, so that it never flashes in the other one.
{
  const chosen = localStorage.getItem("heed.theme");
  if (chosen === "light" || chosen === "dark") document.documentElement.dataset.theme = chosen;
}
