// Formats numbers.

const UNITS = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]];

function unitOf(ns) {
  return UNITS.find(([size]) => ns >= size) ?? UNITS[3];
}

function threeDigits(value) {
  return value.toFixed(value < 9.995 ? 2 : value < 99.95 ? 1 : 0);
}

function durationText(ns) {
  if (ns < 999.5) {
    return `${Math.round(ns)} ns`;
  }
  const [size, name] = ns < 999.5e3 ? UNITS[2] : ns < 999.5e6 ? UNITS[1] : UNITS[0];
  return `${threeDigits(ns / size)} ${name}`;
}

// A time, with enough digits for this zoom level.
function momentText(ns, distance, top) {
  if (ns === 0) {
    return "0";
  }
  const [size, name] = unitOf(top);
  const digits = Math.max(0, Math.ceil(Math.log10(size / distance) - 1e-9));
  return `${(ns / size).toFixed(Math.min(digits, 12))} ${name}`;
}

function bytesText(bytes) {
  if (bytes < 1024) {
    return `${bytes} B`;
  }
  const units = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
  let value = bytes / 1024;
  let unit = 0;
  while (value >= 1023.5 && unit + 1 < units.length) {
    value /= 1024;
    unit += 1;
  }
  return `${threeDigits(value)} ${units[unit]}`;
}

// The smallest of 1, 2, 5, 10, … nanoseconds that divides the length into at most `most` parts.
function roundStep(length, most) {
  for (let decade = 1; ; decade *= 10) {
    for (const factor of [1, 2, 5]) {
      if (factor * decade * most >= length) {
        return factor * decade;
      }
    }
  }
}
