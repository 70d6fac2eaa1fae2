// Tooltips for parts of pictures: by mouse, by touch, and by the arrow keys on a figure.

const tips = JSON.parse(document.getElementById("data").textContent).tips;
let shown = null;
let byKey = false;

function fillTooltip({ title, rows }) {
  const table = document.createElement("table");
  for (const { colour, name, cells } of rows) {
    const row = table.insertRow();
    const head = element("th", "");
    if (colour) {
      head.append(element("i", "", `swatch ${colour}`));
    }
    head.append(name);
    row.append(head, ...cells.map((cell) => element("td", cell)));
  }
  hoverBox.replaceChildren(element("b", title), table);
}

function showTooltip(part, x, y) {
  if (part !== shown) {
    hideTooltip();
    shown = part;
    part.classList.add("on");
    fillTooltip(tips[part.dataset.tip]);
    hoverBox.hidden = false;
  }
  // On a phone the box would cover the picture: put it below.
  placeHover(x, innerWidth < 720 ? part.getBoundingClientRect().bottom : y);
}

function hideTooltip() {
  if (shown) {
    shown.classList.remove("on");
    shown = null;
  }
  hoverBox.hidden = true;
}

function point(event) {
  const part = event.target instanceof Element ? event.target.closest("[data-tip]") : null;
  if (part) {
    byKey = false;
    showTooltip(part, event.clientX, event.clientY);
  } else {
    hideTooltip();
  }
}

function showBeside(part) {
  const { left, top, width, height } = part.getBoundingClientRect();
  showTooltip(part, left + width / 2, Math.max(top, 0) + Math.min(height, innerHeight) / 3);
}

// A part selected by key stays selected while the page scrolls to it.
function scrolled() {
  if (shown && byKey) {
    showBeside(shown);
  } else {
    hideTooltip();
  }
}

// Parts of the visible picture: a figure has one for wide and one for narrow windows.
function partsOf(figure) {
  return [...figure.querySelectorAll("[data-tip]")].filter((part) => part.getClientRects().length > 0);
}

function step(parts, key) {
  const at = parts.indexOf(shown);
  const last = parts.length - 1;
  const next = {
    ArrowRight: Math.min(at + 1, last), ArrowDown: Math.min(at + 1, last),
    ArrowLeft: at < 0 ? last : Math.max(at - 1, 0), ArrowUp: at < 0 ? last : Math.max(at - 1, 0),
    Home: 0, End: last,
  }[key];
  if (next === undefined || last < 0) {
    return false;
  }
  byKey = true;
  showBeside(parts[next]);
  return true;
}

for (const figure of document.querySelectorAll("figure")) {
  figure.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) {
      return;
    }
    if (step(partsOf(figure), event.key)) {
      event.preventDefault();
    }
  });
  figure.addEventListener("blur", hideTooltip);
}
hoverBox.setAttribute("role", "status");
addEventListener("pointermove", point);
addEventListener("pointerdown", point);
addEventListener("keydown", (event) => {
  if (event.key === "Escape") {
    hideTooltip();
  }
});
addEventListener("scroll", scrolled, { passive: true });
addEventListener("resize", hideTooltip);
document.documentElement.dataset.drawn = document.querySelectorAll("[data-tip]").length;
