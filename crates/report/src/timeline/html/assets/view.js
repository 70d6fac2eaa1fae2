// The visible part of the time scale, in nanoseconds.

const WHOLE = Math.max(chart.longest_ns, 1);
const SHORTEST = Math.min(WHOLE, Math.max(10, WHOLE * 1e-7));
const view = { from: 0, to: WHOLE };

function viewLength() {
  return view.to - view.from;
}

function viewIsWhole() {
  return viewLength() >= WHOLE * (1 - 1e-9);
}

function setView(from, length) {
  const kept = Math.min(Math.max(length, SHORTEST), WHOLE);
  view.from = Math.min(Math.max(from, 0), WHOLE - kept);
  view.to = view.from + kept;
  scheduleDraw();
}

// Zooms by a factor around a time.
function zoomView(factor, moment) {
  const length = Math.min(Math.max(viewLength() * factor, SHORTEST), WHOLE);
  setView(moment - ((moment - view.from) * length) / viewLength(), length);
}

// Pans by a share of the visible part.
function panView(part) {
  setView(view.from + part * viewLength(), viewLength());
}
