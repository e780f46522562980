// The energy-time frontier of one task, with the point the plan uses.

const SVG = "http://www.w3.org/2000/svg";

function shape(name, attributes, text) {
  const node = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) node.setAttribute(key, value);
  if (text !== undefined) node.textContent = text;
  return node;
}

function curveOf(model, task, kind) {
  const c = model.curve_of(model.task_application[task], kind);
  if (c === undefined) return null;
  const work = model.task_work[task], first = model.curve_first[c], end = model.curve_first[c + 1];
  const place = (low, high, step) => (step === 65535 ? NaN : (low + ((high - low) * step) / 65534) * work);
  const time = (step) => place(model.curve_low_t[c], model.curve_high_t[c], step);
  const joules = (step) => place(model.curve_low_e[c], model.curve_high_e[c], step);
  const points = [];
  for (let i = first; i < end; i++) points.push([time(model.curve_t[i]), joules(model.curve_e[i])]);
  return {
    points,
    enumerated: model.curve_enumerated[c] === 1,
    optimum: [time(model.curve_optimum_t[c]), joules(model.curve_optimum_e[c])],
    standard: [time(model.curve_default_t[c]), joules(model.curve_default_e[c])],
  };
}

// Where the plan is on the chart: time and energy of one processor in the last attempt.
function usedPoint(model, task) {
  if (model.task_segment[task] < 0) return null;
  const width = Math.max(1, model.task_width[task]);
  return [model.task_busy[task] / width, model.task_last_joules[task] / width];
}

function drawFrontier(model, task, box, note, facts) {
  if (!model.curve_of) return;
  const kind = model.task_segment[task] >= 0 ? model.processor_kind[model.task_where[task]] : firstKind(model, task);
  note.textContent = `${model.task_names[task]} (${model.application_names[model.task_application[task]]})`;
  box.replaceChildren();
  facts.replaceChildren(...pairsOf(taskFacts(model, task, kind)));
  const curve = kind < 0 ? null : curveOf(model, task, kind);
  if (!curve || !(model.task_work[task] > 0)) {
    const why = kind < 0 ? "No processor of this platform can run it." : "A task without work has no frontier.";
    box.append(element("p", { className: "note", style: "padding: 24px" }, why));
    return;
  }
  const used = usedPoint(model, task);
  box.append(frontierShape(curve, used, box.clientWidth, `Energy against run time of ${model.task_names[task]} on ${model.kinds[kind].name}`));
}

function firstKind(model, task) {
  return model.kinds.findIndex((_, kind) => model.curve_of(model.task_application[task], kind) !== undefined);
}

function frontierShape(curve, used, room, title) {
  const W = Math.min(560, Math.max(300, room)), H = 320, left = 66, right = W - 18, top = 18, bottom = H - 44;
  const all = [...curve.points, curve.optimum, curve.standard, ...(used ? [used] : [])].filter(([t, e]) => Number.isFinite(t + e));
  const bounds = (k) => {
    const low = Math.min(...all.map((p) => p[k])), high = Math.max(...all.map((p) => p[k])), pad = (high - low || high || 1) * 0.06;
    return [Math.max(0, low - pad), high + pad];
  };
  const [t0, t1] = bounds(0), [e0, e1] = bounds(1);
  const x = (t) => left + ((t - t0) / (t1 - t0)) * (right - left), y = (e) => bottom - ((e - e0) / (e1 - e0)) * (bottom - top);
  const svg = shape("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": title });
  frontierAxes(svg, { x, y, t0, t1, e0, e1, left, right, top, bottom });
  const path = curve.points.map(([t, e]) => `${x(t).toFixed(2)},${y(e).toFixed(2)}`);
  if (curve.enumerated) {
    for (const [t, e] of curve.points) svg.append(shape("circle", { cx: x(t), cy: y(e), r: 2.6, fill: "var(--soft)" }));
  } else svg.append(shape("polyline", { points: path.join(" "), fill: "none", stroke: "var(--soft)", "stroke-width": 2 }));
  const marks = [[curve.standard, "default clock", "var(--idle)", 5], [curve.optimum, "least energy", "none", 9]];
  if (used) marks.unshift([used, "this plan", "var(--accent)", 6]);
  const taken = [];
  for (const [[t, e], text, colour, size] of marks) {
    if (!Number.isFinite(t + e)) continue;
    svg.append(shape("circle", { cx: x(t), cy: y(e), r: size, fill: colour, stroke: colour === "none" ? "var(--good)" : "var(--panel)", "stroke-width": colour === "none" ? 2 : 1.5 }));
    markText(svg, x(t), y(e), text, { left, right, top, bottom }, taken);
  }
  return svg;
}

// Put a mark's words beside it, moved up or down until they cover no others.
function markText(svg, x, y, text, box, taken) {
  const wide = text.length * 7, end = x + 12 + wide > box.right;
  const from = end ? x - 12 - wide : x + 12;
  for (const shift of [-8, 16, -24, 32, -40, 48]) {
    const at = y + shift;
    if (at < box.top + 8 || at > box.bottom - 2) continue;
    if (taken.some(([f, a, w]) => Math.abs(a - at) < 14 && f < from + wide && from < f + w)) continue;
    taken.push([from, at, wide]);
    svg.append(shape("text", { x: end ? x - 12 : x + 12, y: at, "text-anchor": end ? "end" : "start", class: text === "this plan" ? "strong" : "" }, text));
    return;
  }
}

function frontierAxes(svg, { x, y, t0, t1, e0, e1, left, right, top, bottom }) {
  for (const tick of numberTicks(e0, e1, 5).ticks) {
    svg.append(shape("line", { x1: left, x2: right, y1: y(tick), y2: y(tick), stroke: "var(--line)" }));
    svg.append(shape("text", { x: left - 8, y: y(tick) + 4, "text-anchor": "end" }, withPrefix(tick, "J")));
  }
  for (const tick of timeTicks(t0, t1, 5).ticks) {
    svg.append(shape("line", { x1: x(tick), x2: x(tick), y1: top, y2: bottom, stroke: "var(--line)" }));
    svg.append(shape("text", { x: x(tick), y: bottom + 18, "text-anchor": "middle" }, duration(tick)));
  }
  svg.append(shape("text", { x: (left + right) / 2, y: bottom + 38, "text-anchor": "middle" }, "run time"));
}

function taskFacts(model, task, kind) {
  const facts = [["Outcome", model.statuses[model.task_status[task]] + (model.reasons[task] ? `: ${model.reasons[task]}` : "")]];
  const i = model.task_segment[task];
  if (i >= 0) {
    facts.push(["Where", `${processorText(model, model.task_where[task])}${model.task_width[task] > 1 ? ` and ${model.task_width[task] - 1} more` : ""}`]);
    facts.push(["When", `${instant(model, model.task_start[task])} to ${instant(model, model.task_end[task])}`]);
    facts.push(["Clock", clockText(model, kind, model.task_clock[task], model.segment_memory[i])]);
    facts.push(["Energy", withPrefix(model.task_joules[task], "J") + (model.task_attempts[task] ? ` in ${model.task_attempts[task] + 1} attempts` : "")]);
  }
  facts.push(["Deadline", Number.isFinite(model.task_deadline[task]) ? `${instant(model, model.task_deadline[task])}${Number.isFinite(model.task_slack[task]) ? `, slack ${duration(model.task_slack[task])}` : ""}` : "none"]);
  return facts;
}
