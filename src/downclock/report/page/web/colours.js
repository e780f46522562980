// Colours: the theme's, and the three ways to colour a bar.

const CLOCK_RAMP = ["#34559f", "#3b8db8", "#79bda3", "#e6c368", "#d2603a"];
const SLACK_RAMP = ["#bd4429", "#dfa650", "#8fb98b", "#3c8f86"];
const NO_DEADLINE = "#98a2ab";
const APPLICATIONS = ["#3f7fae", "#d68a3c", "#5a9f68", "#b85c5c", "#8873b0", "#b08d57", "#c279a5", "#4aa3a0", "#a3a34a", "#6d7f94", "#d0725f", "#7fa87a"];

function theme() {
  const style = getComputedStyle(document.documentElement);
  const names = ["paper", "panel", "ink", "soft", "line", "faint", "accent", "run", "shared", "idle", "host", "sleep", "wake", "asleep", "awake", "waking", "down", "bad"];
  return Object.fromEntries(names.map((name) => [name, style.getPropertyValue(`--${name}`).trim()]));
}

function rgb(hex) {
  const full = hex.length === 4 ? hex.replace(/[0-9a-f]/gi, "$&$&") : hex;
  const value = parseInt(full.slice(1), 16);
  return [(value >> 16) & 255, (value >> 8) & 255, value & 255];
}

// A pixel as ImageData holds it on little-endian machines.
function pixel([r, g, b]) {
  return ((255 << 24) | (b << 16) | (g << 8) | r) >>> 0;
}

function isDark(colour) {
  return 0.3 * (colour & 255) + 0.59 * ((colour >> 8) & 255) + 0.11 * ((colour >> 16) & 255) < 118;
}

function darker([r, g, b], by = 0.82) {
  return [Math.round(r * by), Math.round(g * by), Math.round(b * by)];
}

function ramp(stops) {
  const colours = stops.map(rgb);
  return (place) => {
    const at = Math.min(1, Math.max(0, place)) * (colours.length - 1);
    const k = Math.min(colours.length - 2, Math.floor(at));
    return colours[k].map((from, c) => Math.round(from + (colours[k + 1][c] - from) * (at - k)));
  };
}

// 256 shades of a ramp as pixels, bar and bar's edge.
function shades(stops) {
  const at = ramp(stops);
  const fill = new Uint32Array(256), edge = new Uint32Array(256);
  for (let i = 0; i < 256; i++) {
    fill[i] = pixel(at(i / 255));
    edge[i] = pixel(darker(at(i / 255)));
  }
  return { fill, edge };
}

function clockRange(model) {
  let low = Infinity, high = -Infinity;
  for (const core of model.segment_core) { low = Math.min(low, core); high = Math.max(high, core); }
  const room = Math.max(0, 0.1 - (high - low)) / 2;
  return [low - room, high + room];
}

// Colour of every segment: {fill, edge} pixels.
function segmentColours(model, by) {
  const n = model.segments, fill = new Uint32Array(n), edge = new Uint32Array(n);
  if (by === "application") {
    const colours = APPLICATIONS.map(rgb), rank = applicationRank(model);
    for (let i = 0; i < n; i++) {
      const colour = colours[rank[model.task_application[model.segment_task[i]]] % colours.length];
      fill[i] = pixel(colour);
      edge[i] = pixel(darker(colour));
    }
    return { fill, edge };
  }
  const table = shades(by === "slack" ? SLACK_RAMP : CLOCK_RAMP);
  const none = rgb(NO_DEADLINE), [low, high] = clockRange(model);
  for (let i = 0; i < n; i++) {
    const place = by === "slack" ? slackPlace(model, model.segment_task[i]) : (model.segment_core[i] - low) / (high - low);
    if (Number.isNaN(place)) { fill[i] = pixel(none); edge[i] = pixel(darker(none)); continue; }
    const shade = Math.round(255 * Math.min(1, Math.max(0, place)));
    fill[i] = table.fill[shade];
    edge[i] = table.edge[shade];
  }
  return { fill, edge };
}

// Slack as a share of the time between arrival and deadline; NaN without a deadline.
function slackPlace(model, task) {
  const slack = model.task_slack[task], window = model.task_deadline[task] - model.task_arrival[task];
  return Number.isFinite(slack) ? (window > 0 ? slack / window : 0) : NaN;
}

// Applications from the most used to the least.
function applicationRank(model) {
  if (model.application_rank) return model.application_rank;
  const used = new Uint32Array(model.application_names.length);
  for (const application of model.task_application) used[application]++;
  const order = [...used.keys()].sort((a, b) => used[b] - used[a] || a - b);
  const rank = new Uint32Array(order.length);
  order.forEach((application, place) => { rank[application] = place; });
  model.application_order = order;
  model.application_rank = rank;
  return rank;
}

function css(colour) {
  return `rgb(${colour.join(" ")})`;
}
