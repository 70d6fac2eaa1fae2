// What is under the pointer.

const REACH = 3;

// The span at a point of a run's canvas: one that covers it, else the nearest within reach.
function spanAt(run, x, y) {
  if (x < plot.left || x > plot.right) {
    return null;
  }
  const row = run.rows.find(({ top, height }) => y >= top && y < top + height);
  if (!row) {
    return null;
  }
  const lane = Math.min(Math.floor(((y - row.top) / row.height) * row.lanes), row.lanes - 1);
  let best = null;
  let bestDistance = REACH;
  for (const span of row.spans) {
    if (span.lane !== lane) {
      continue;
    }
    const distance = Math.max(xOf(span.start) - x, x - xOf(span.end), 0);
    if (distance < bestDistance) {
      best = { row, span };
      bestDistance = distance;
    }
  }
  return best;
}

function factsOf(row, span) {
  const facts = [["track", row.name], ["kind", span.kind]];
  if (span.chunk !== null) {
    facts.push(["chunk", `${span.chunk}`]);
  }
  if (span.stream !== null) {
    facts.push(["stream", `${span.stream}`]);
  }
  if (span.bytes > 0) {
    facts.push(["bytes", bytesText(span.bytes)]);
  }
  facts.push(["start", durationText(span.start)], ["duration", durationText(span.length)]);
  if (span.bytes > 0 && span.length > 0) {
    facts.push(["rate", `${threeDigits(span.bytes / span.length)} GB/s`]);
  }
  return facts;
}

function fillHover(row, span) {
  const list = document.createElement("dl");
  for (const [name, value] of factsOf(row, span)) {
    list.append(element("dt", name), element("dd", value));
  }
  hoverBox.replaceChildren(element("b", span.label || span.kind), list);
}

function showHover(run, event) {
  const { left, top } = run.canvas.getBoundingClientRect();
  const found = spanAt(run, event.clientX - left, event.clientY - top);
  const span = found ? found.span : null;
  if (found) {
    if (span !== hovered) {
      fillHover(found.row, span);
    }
    hoverBox.hidden = false;
    placeHover(event.clientX, event.clientY);
  } else {
    hoverBox.hidden = true;
  }
  if (span !== hovered) {
    hovered = span;
    scheduleDraw();
  }
}

function hideHover() {
  hoverBox.hidden = true;
  if (hovered) {
    hovered = null;
    scheduleDraw();
  }
}
