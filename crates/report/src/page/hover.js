// The box that describes what is under the pointer.

const hoverBox = document.getElementById("hover");

function element(tag, text, className) {
  const made = document.createElement(tag);
  made.textContent = text;
  if (className) {
    made.className = className;
  }
  return made;
}

// Near a point, and inside the window.
function placeHover(x, y) {
  const { width, height } = hoverBox.getBoundingClientRect();
  const left = x + 16 + width > innerWidth ? x - 16 - width : x + 16;
  const top = y + 18 + height > innerHeight ? y - 12 - height : y + 18;
  hoverBox.style.left = `${Math.max(8, Math.min(left, innerWidth - width - 8))}px`;
  hoverBox.style.top = `${Math.max(8, top)}px`;
}
