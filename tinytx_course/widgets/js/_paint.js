// Colours, and matrices of cells. Shared by all explorers, imports nothing.

// From nothing to all: on paper the darker, on a dark ground the brighter.
const RAMPS = {
  light: [
    [244, 248, 253],
    [178, 206, 235],
    [92, 150, 208],
    [33, 94, 168],
    [8, 42, 98],
  ],
  dark: [
    [33, 39, 49],
    [38, 70, 112],
    [58, 112, 172],
    [112, 168, 226],
    [206, 228, 252],
  ],
};
// From below zero over zero to above: red, empty, blue.
const SIGNED = {
  light: [
    [165, 20, 42],
    [228, 128, 98],
    [248, 248, 248],
    [103, 169, 207],
    [28, 92, 160],
  ],
  dark: [
    [255, 140, 118],
    [158, 74, 62],
    [33, 39, 49],
    [48, 96, 150],
    [120, 182, 246],
  ],
};
const BLOCKED = {
  light: [
    [231, 233, 237],
    [150, 157, 167],
  ],
  dark: [
    [44, 48, 56],
    [104, 112, 124],
  ],
};
export const rgb = (color) => `rgb(${color.join(" ")})`;
export const shade = (share, theme) => mixStops(RAMPS[theme], share);
// The colour of a number from -1 to 1, as a share from 0 to 1.
export const signedShade = (share, theme) => mixStops(SIGNED[theme], share);
function mixStops(stops, share) {
  const place = clamp(share, 0, 1) * (stops.length - 1);
  const low = Math.min(Math.floor(place), stops.length - 2);
  return stops[low].map((a, i) => Math.round(a + (stops[low + 1][i] - a) * (place - low)));
}
// A bar of the colours from low to high, with the numbers at its ends.
export function scaleBar(color, low, high, name) {
  const stops = range(11).map(
    (i) => `light-dark(${rgb(color(i / 10, "light"))}, ${rgb(color(i / 10, "dark"))})`,
  );
  const bar = h("i", { style: `background: linear-gradient(to right, ${stops.join(", ")})` });
  return h("div.tx-scale", { "aria-hidden": "true" }, h("span", name), h("span", low), bar, h("span", high));
}
// Black or white, whichever can be read on this colour.
export function inkOn(color) {
  const [r, g, b] = color.map((c) =>
    c / 255 <= 0.04045 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4,
  );
  return 0.2126 * r + 0.7152 * g + 0.0722 * b > 0.179 ? "#000" : "#fff";
}

const hatching = {};
function hatch(context, theme) {
  hatching[theme] ??= (() => {
    const tile = h("canvas", { width: 8, height: 8 });
    const pen = tile.getContext("2d");
    const [ground, stripe] = BLOCKED[theme];
    pen.fillStyle = rgb(ground);
    pen.fillRect(0, 0, 8, 8);
    pen.strokeStyle = rgb(stripe);
    pen.lineWidth = 1.6;
    for (const x of [-8, 0, 8]) {
      pen.beginPath();
      pen.moveTo(x, 8);
      pen.lineTo(x + 8, 0);
      pen.stroke();
    }
    return tile;
  })();
  return context.createPattern(hatching[theme], "repeat");
}

// Draw a matrix of shares: blocked(i, j) is hatched, so that nobody takes it for a weight of 0.
export function paintCells(
  canvas,
  { rows, cols, size, share, blocked = () => false, theme, numbers = false },
) {
  const sharp = window.devicePixelRatio || 1;
  const gap = size >= 9 ? 1 : 0;
  const pen = canvas.getContext("2d");
  canvas.width = Math.round(cols * size * sharp);
  canvas.height = Math.round(rows * size * sharp);
  canvas.style.width = `${cols * size}px`;
  canvas.style.height = `${rows * size}px`;
  pen.scale(sharp, sharp);
  const stripes = hatch(pen, theme);
  pen.textAlign = "center";
  pen.textBaseline = "middle";
  pen.font = `${Math.min(12, size * 0.4)}px system-ui, sans-serif`;
  for (let i = 0; i < rows; i++) {
    for (let j = 0; j < cols; j++) {
      const off = blocked(i, j);
      const value = share(i, j);
      const color = off ? null : shade(value, theme);
      pen.fillStyle = off ? stripes : rgb(color);
      pen.fillRect(j * size, i * size, size - gap, size - gap);
      if (numbers && !off && value >= 0.005) {
        pen.fillStyle = inkOn(color);
        pen.fillText(value.toFixed(2).replace(/^0/, ""), (j + 0.5) * size - gap / 2, (i + 0.5) * size);
      }
    }
  }
}

const tables = new Map();
function colorsOf(color, theme) {
  if (!tables.has(color)) tables.set(color, {});
  tables.get(color)[theme] ??= range(256).map((i) => color(i / 255, theme));
  return tables.get(color)[theme];
}

// The same at one pixel a cell, for thumbnails; quiet: what is blocked is plain grey.
export function paintPixels(
  canvas,
  { rows, cols, share, blocked = () => false, theme, color = shade, quiet = false },
) {
  canvas.width = cols;
  canvas.height = rows;
  const pen = canvas.getContext("2d");
  const image = pen.createImageData(cols, rows);
  const [ground, stripe] = BLOCKED[theme];
  const colors = colorsOf(color, theme);
  for (let i = 0, at = 0; i < rows; i++) {
    for (let j = 0; j < cols; j++, at += 4) {
      const off = blocked(i, j);
      const pixel = off
        ? quiet || (i + j) % 3
          ? ground
          : stripe
        : colors[Math.round(255 * clamp(share(i, j), 0, 1))];
      image.data.set(pixel, at);
      image.data[at + 3] = 255;
    }
  }
  pen.putImageData(image, 0, 0);
}
