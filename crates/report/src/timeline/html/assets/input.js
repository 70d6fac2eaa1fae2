// Mouse, touch and keyboard.

const STEP = 1.5;
const held = new Map();

function localX(run, event) {
  return event.clientX - run.canvas.getBoundingClientRect().left;
}

// Centre of the pointers, and their distance.
function grip() {
  const places = [...held.values()];
  const middle = places.reduce((sum, x) => sum + x, 0) / places.length;
  return { middle, apart: places.length > 1 ? Math.abs(places[0] - places[1]) : 0 };
}

function moveHeld(run, event) {
  const before = grip();
  held.set(event.pointerId, localX(run, event));
  const after = grip();
  if (before.apart > 8 && after.apart > 8) {
    zoomView(before.apart / after.apart, momentAt(before.middle));
  }
  panView((before.middle - after.middle) / (plot.right - plot.left));
}

function release(run, event) {
  held.delete(event.pointerId);
  run.section.classList.toggle("held", held.size > 0);
}

function wheel(run, event) {
  const unit = event.deltaMode === 1 ? 30 : event.deltaMode === 2 ? 300 : 1;
  const sideways = event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY);
  const amount = unit * (sideways ? event.deltaX || event.deltaY : event.deltaY);
  // When fully zoomed out, the page scrolls.
  if (viewIsWhole() && (sideways || amount > 0) && !event.ctrlKey) {
    return;
  }
  event.preventDefault();
  if (sideways) {
    panView(amount / (plot.right - plot.left));
  } else {
    const x = Math.min(Math.max(localX(run, event), plot.left), plot.right);
    zoomView(Math.exp(amount * (event.ctrlKey ? 0.01 : 0.002)), momentAt(x));
  }
  showHover(run, event);
}

function middleOfView() {
  return (view.from + view.to) / 2;
}

const KEYS = {
  ArrowLeft: () => panView(-0.1),
  ArrowRight: () => panView(0.1),
  "+": () => zoomView(1 / STEP, middleOfView()),
  "=": () => zoomView(1 / STEP, middleOfView()),
  "-": () => zoomView(STEP, middleOfView()),
  "0": () => setView(0, WHOLE),
};

function listenToRun(run) {
  const { section } = run;
  section.addEventListener("pointerdown", (event) => {
    if (event.button === 0) {
      section.setPointerCapture(event.pointerId);
      held.set(event.pointerId, localX(run, event));
      section.classList.add("held");
    }
  });
  section.addEventListener("pointermove", (event) => {
    if (held.has(event.pointerId)) {
      moveHeld(run, event);
    }
  });
  section.addEventListener("pointerup", (event) => release(run, event));
  section.addEventListener("pointercancel", (event) => release(run, event));
  section.addEventListener("mousemove", (event) => showHover(run, event));
  section.addEventListener("mouseleave", hideHover);
  section.addEventListener("dblclick", () => setView(0, WHOLE));
  section.addEventListener("wheel", (event) => wheel(run, event), { passive: false });
}

function listen() {
  runs.forEach(listenToRun);
  document.getElementById("in").addEventListener("click", KEYS["+"]);
  document.getElementById("out").addEventListener("click", KEYS["-"]);
  document.getElementById("all").addEventListener("click", KEYS["0"]);
  document.getElementById("charts").addEventListener("keydown", (event) => {
    const act = event.ctrlKey || event.metaKey || event.altKey ? null : KEYS[event.key];
    if (act) {
      event.preventDefault();
      act();
    } else if (event.key === "Escape") {
      hideHover();
    }
  });
  addEventListener("scroll", hideHover, { passive: true });
  addEventListener("resize", scheduleDraw);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", scheduleDraw);
}
