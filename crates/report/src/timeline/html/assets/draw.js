// Canvases: the axis on top, and one per run.

const ROW = 20;
const ROW_MOST = 160;
const LANE = 12;
const GAP = 5;
const FONT = 'system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';

const axisCanvas = document.querySelector("#axis canvas");
const rangeText = document.getElementById("range");
const runs = [...document.querySelectorAll("canvas.run")].map((canvas, index) => {
  const { rows, total_ns: total } = chart.timelines[index];
  let top = 0;
  for (const row of rows) {
    row.lastChunk = row.spans.reduce((last, { chunk }) => Math.max(last, chunk ?? 0), 0);
    row.top = top;
    row.height = Math.min(Math.max(row.lanes * LANE, ROW), ROW_MOST);
    top += row.height + GAP;
  }
  canvas.style.height = `${Math.max(top, 1)}px`;
  return { canvas, section: canvas.closest("section"), rows, total, height: top };
});

let plot = { left: 0, right: 1, narrow: false, width: 1 };
let colours = {};
let hovered = null;
let scheduled = false;

function scheduleDraw() {
  if (!scheduled) {
    scheduled = true;
    requestAnimationFrame(drawAll);
  }
}

function xOf(ns) {
  return plot.left + ((ns - view.from) / viewLength()) * (plot.right - plot.left);
}

function momentAt(x) {
  return view.from + ((x - plot.left) / (plot.right - plot.left)) * viewLength();
}

function measure() {
  const width = document.getElementById("charts").clientWidth;
  const style = getComputedStyle(document.documentElement);
  const side = parseFloat(style.getPropertyValue("--side"));
  const narrow = width < 640;
  plot = { left: narrow ? 62 : 124, right: Math.max(width - side, 80), narrow, width };
  for (const name of ["page", "ink", "dim", "strip", "grid", "rule"]) {
    colours[name] = style.getPropertyValue(`--${name}`).trim();
  }
}

// A cleared context in CSS pixels.
function contextOf(canvas, height) {
  const ratio = Math.min(devicePixelRatio || 1, 16000 / Math.max(height, plot.width, 1));
  canvas.width = Math.round(plot.width * ratio);
  canvas.height = Math.max(1, Math.round(height * ratio));
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.textBaseline = "middle";
  return context;
}

function tickList() {
  const step = roundStep(viewLength(), Math.max(2, Math.floor((plot.right - plot.left) / (plot.narrow ? 48 : 100))));
  const ticks = [];
  for (let at = Math.ceil(view.from / step) * step; at <= view.to; at += step) {
    ticks.push({ x: xOf(at), text: momentText(at, step, view.to) });
  }
  return ticks;
}

function drawAxis(ticks) {
  const context = contextOf(axisCanvas, 30);
  context.font = `12px ${FONT}`;
  context.fillStyle = colours.dim;
  context.textAlign = "center";
  let free = 0;
  for (const { x, text } of ticks) {
    const half = context.measureText(text).width / 2;
    const middle = Math.min(Math.max(x, half), plot.width - half);
    if (middle - half >= free && middle + half <= plot.width - 38) {
      context.fillText(text, middle, 13);
      free = middle + half + 8;
    }
  }
  context.textAlign = "right";
  context.fillText("busy", plot.width, 13);
  context.fillStyle = colours.rule;
  context.fillRect(plot.left, 27, plot.right - plot.left, 1);
  for (const { x } of ticks) {
    context.fillRect(Math.round(x), 23, 1, 7);
  }
}

function drawRun(run, ticks) {
  const context = contextOf(run.canvas, run.height);
  context.save();
  context.beginPath();
  context.rect(plot.left, 0, plot.right - plot.left, run.height);
  context.clip();
  context.fillStyle = colours.strip;
  for (const row of run.rows) {
    context.fillRect(xOf(0), row.top, xOf(run.total) - xOf(0), row.height);
  }
  context.fillStyle = colours.grid;
  for (const { x } of ticks) {
    context.fillRect(Math.round(x), 0, 1, run.height);
  }
  let drawn = 0;
  context.font = `11px ${FONT}`;
  context.textAlign = "center";
  for (const row of run.rows) {
    row.numberWidth = context.measureText(`${row.lastChunk}`).width;
    for (const span of row.spans) {
      if (span.end >= view.from && span.start <= view.to) {
        drawSpan(context, row, span);
        drawn += 1;
      }
    }
  }
  context.restore();
  drawNames(context, run);
  return drawn;
}

function boxOf(row, span) {
  const lane = row.height / row.lanes;
  const height = lane > 4 && row.lanes > 1 ? lane - 1 : lane;
  const top = row.top + span.lane * lane;
  const x = xOf(span.start);
  const width = Math.max(xOf(span.end) - x, 0.75);
  return span.thin
    ? { x, width, top: top + height * 0.375, height: height / 4 }
    : { x, width, top, height };
}

// The label if it fits, else the number of the chunk. Numbers of a row are shown either all or not at
// all.
function textInside(context, row, span, room) {
  const { label, chunk } = span;
  if (label && label.length < 200 && context.measureText(label).width + 6 <= room) {
    return label;
  }
  return chunk !== null && row.numberWidth + 1.5 <= room ? `${chunk}` : "";
}

function drawSpan(context, row, span) {
  const box = boxOf(row, span);
  context.fillStyle = span.fill;
  context.fillRect(box.x, box.top, box.width, box.height);
  const left = Math.max(box.x, plot.left);
  const room = Math.min(box.x + box.width, plot.right) - left;
  const text = room > 7 && box.height >= 11 ? textInside(context, row, span, room) : "";
  if (text) {
    context.fillStyle = span.ink;
    context.fillText(text, left + room / 2, box.top + box.height / 2 + 0.5);
  }
  if (span === hovered) {
    context.strokeStyle = colours.ink;
    context.lineWidth = 2;
    context.strokeRect(box.x + 1, box.top + 1, Math.max(box.width - 2, 1), Math.max(box.height - 2, 1));
  }
}

function drawNames(context, run) {
  context.font = `12.5px ${FONT}`;
  context.textAlign = "right";
  for (const row of run.rows) {
    const middle = row.top + row.height / 2 + 0.5;
    context.fillStyle = colours.ink;
    context.fillText(plot.narrow ? row.short : row.name, plot.left - 9, middle, plot.left - 9);
    context.fillStyle = colours.dim;
    context.fillText(row.busy, plot.width, middle);
  }
}

function drawAll() {
  scheduled = false;
  measure();
  const ticks = tickList();
  drawAxis(ticks);
  let drawn = 0;
  for (const run of runs) {
    drawn += drawRun(run, ticks);
  }
  const digit = viewLength() / 1000;
  const range = `${momentText(view.from, digit, view.to)} – ${momentText(view.to, digit, view.to)}`;
  if (rangeText.textContent !== range) {
    rangeText.textContent = range;
  }
  document.documentElement.dataset.drawn = drawn;
}
