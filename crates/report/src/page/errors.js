// Record errors where tests can see them.
addEventListener("error", (event) => {
  document.documentElement.dataset.error = event.message;
});
