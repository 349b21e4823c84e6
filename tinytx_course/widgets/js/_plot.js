// Charts with axes, whose letters have one size at any width. Shared by all explorers, imports nothing.

const PLOT = { left: 52, top: 10, below: 40, apart: 16 };

// Names at the ends of lines, moved apart where they would collide: the heights they get, from the top down.
export function spread(heights, low, high, apart = PLOT.apart) {
  const order = heights.map((_, i) => i).sort((a, b) => heights[a] - heights[b]);
  const out = [...heights];
  order.forEach((i, n) => {
    out[i] = Math.max(out[i], low, n ? out[order[n - 1]] + apart : low);
  });
  order.reverse().forEach((i, n) => {
    out[i] = Math.min(out[i], n ? out[order[n - 1]] - apart : high);
  });
  return out;
}

// A chart; a pressed pointer calls go(x), if there is one. Its update takes the ranges x and y as [low, high], ticks as
// [value, text] pairs, lines as { points, tone, name }, of which a name is written at the end (what is false is
// left out), dots as { at: [x, y], tone, name }, the place `at` of a marker, and a band { from, to, name } of
// heights. A bare dot is a name alone. Names of dots go where the fewest dots and lines are; a dot whose tone
// has tx-up is a triangle.
export function plot(ui, { xLabel, yLabel, above = false, height = 200, right = 90, go }) {
  const svg = h("svg.tx-plot", { role: "img", style: `height:${height}px` });
  const bottom = height - PLOT.below;
  const top = above ? 30 : PLOT.top;
  let shown = [0, 1];
  let wide = 300;
  const follow = (across) => {
    const share = (across * wide - PLOT.left) / (wide - PLOT.left - right);
    go(shown[0] + clamp(share, 0, 1) * (shown[1] - shown[0]));
  };
  if (go) ui.drag(svg, follow);
  const update = ({ x, y, xTicks, yTicks, lines: given, dots = [], at, band = null, label: said }) => {
    const lines = given.filter(Boolean);
    wide = svg.clientWidth || 300;
    shown = x;
    const end = wide - right;
    const middle = (top + bottom) / 2;
    const X = (value) => PLOT.left + ((value - x[0]) / (x[1] - x[0] || 1)) * (end - PLOT.left);
    const Y = (value) => bottom - ((clamp(value, ...y) - y[0]) / (y[1] - y[0])) * (bottom - top);
    const named = lines.filter(({ name, points }) => name && points.length);
    const last = named.map(({ points }) => Y(points[points.length - 1][1]));
    const places = spread(last, top + 6, bottom - 9);
    const near = dots.filter(({ bare }) => !bare).map(({ at: [a, b] }) => [X(a), Y(b)]);
    const drawn = lines.map(({ points }) => points.map(([a, b]) => [X(a), Y(b)]));
    const crosses = (left, size, base) =>
      drawn.some((points) =>
        points.some(
          ([x1, y1], i) =>
            i &&
            [0, 1, 2, 3, 4].some((n) => {
              const [x0, y0] = points[i - 1];
              const spot = left + (n * size) / 4;
              const level = y0 + ((y1 - y0) * (spot - x0)) / (x1 - x0 || 1);
              return spot >= x0 && spot <= x1 && level > base - 15 && level < base + 6;
            }),
        ),
      );
    const label = (atX, atY, name, tone, bare) => {
      const size = 7.2 * name.length;
      const ways = [
        [9, 16],
        [-9 - size, 16],
        [-size / 2, 24],
        [9, 36],
        [-9 - size, 36],
        [9, -9],
        [-9 - size, -9],
      ];
      if (bare) ways.reverse();
      const bad = ([across, down]) =>
        near.filter(
          ([a, b]) =>
            a > atX + across - 6 && a < atX + across + size + 6 && b > atY + down - 16 && b < atY + down + 7,
        ).length +
        4 * crosses(atX + across, size, atY + down) +
        9 *
          (atX + across < PLOT.left || atX + across + size > wide || atY + down > bottom || atY + down < top);
      const [dx, dy] = ways.reduce((best, way) => (bad(way) < bad(best) ? way : best));
      const leader =
        Math.abs(dy) > 30
          ? h("line.tx-rule", { x1: atX, y1: atY + 6, x2: atX + Math.sign(dx) * 12, y2: atY + dy - 12 })
          : "";
      return [
        leader,
        lettering(
          dy === 24 ? atX : atX + (dx < 0 ? -9 : 9),
          atY + dy,
          name,
          dy === 24 ? "middle" : dx < 0 ? "end" : "start",
          { class: tone },
        ),
      ];
    };
    const mark = ([a, b], tone) =>
      tone.includes("tx-up")
        ? h("path", { class: tone, d: `M${X(a)} ${Y(b) - 6}l6 11h-12Z` })
        : h("circle", { class: tone, r: 4.5, cx: X(a), cy: Y(b) });
    const wash =
      band &&
      h("rect.tx-band", {
        x: PLOT.left,
        width: Math.max(0, end - PLOT.left),
        y: Y(band.to),
        height: Math.max(0, Y(band.from) - Y(band.to)),
      });
    svg.replaceChildren(
      ...(band ? [wash, lettering(PLOT.left + 6, Y(band.from) - 6, band.name)] : []),
      ...yTicks.flatMap(([value, text]) => [
        h("line.tx-rule", { x1: PLOT.left, x2: end, y1: Y(value), y2: Y(value) }),
        lettering(PLOT.left - 6, Y(value) + 4, text, "end"),
      ]),
      ...xTicks.map(([value, text]) => lettering(X(value), bottom + 16, text, "middle")),
      lettering((PLOT.left + end) / 2, height - 5, xLabel, "middle"),
      above
        ? lettering(0, 13, yLabel)
        : lettering(0, 0, yLabel, "middle", { transform: `translate(11 ${middle}) rotate(-90)` }),
      h("line.tx-marker", { x1: X(at), x2: X(at), y1: top, y2: bottom }),
      ...lines.map(({ points, tone }) =>
        h("polyline", {
          class: tone,
          fill: "none",
          points: points.map(([a, b]) => `${X(a).toFixed(1)},${Y(b).toFixed(1)}`).join(" "),
        }),
      ),
      ...lines.flatMap(({ points, tone }) => {
        const now = tone.includes("tx-faint") ? null : points.findLast(([a]) => a === at);
        return now ? [h("circle", { class: tone, r: 4.5, cx: X(at), cy: Y(now[1]) })] : [];
      }),
      ...dots.filter(({ bare }) => !bare).map(({ at: place, tone }) => mark(place, tone)),
      ...dots.flatMap(({ at: [a, b], tone, name, bare }) =>
        name ? label(X(a), Y(b), name, tone, bare) : "",
      ),
      ...named.map(({ name, tone, points }, i) =>
        lettering(X(points[points.length - 1][0]) + 8, places[i] + 4, name, null, { class: tone }),
      ),
    );
    // on narrow paper all shrinks
    setAll(svg, { viewBox: `0 0 ${wide} ${height}`, preserveAspectRatio: "xMinYMin" });
    svg.ariaLabel = said;
  };
  update.box = svg;
  return update;
}
