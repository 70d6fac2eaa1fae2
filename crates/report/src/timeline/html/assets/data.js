// The chart embedded in the page.
const chart = JSON.parse(document.getElementById("data").textContent);

// A span with named fields.
function named([lane, kind, shade, label, stream, chunk, bytes, start, length]) {
  const { name, fills, inks, thin } = chart.kinds[kind];
  return {
    lane, kind: name, fill: fills[shade], ink: inks[shade], thin,
    label: chart.labels[label], stream, chunk, bytes, start, length, end: start + length,
  };
}

for (const run of chart.timelines) {
  for (const row of run.rows) {
    row.spans = row.spans.map(named);
  }
}
