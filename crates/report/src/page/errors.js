// What goes wrong is left where a test sees it.
addEventListener("error", (event) => {
  document.documentElement.dataset.error = event.message;
});
