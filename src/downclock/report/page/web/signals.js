// Power over time, stacked by part, and the price or CO2 curve above it.

function signalChart(model, timeline, canvas, chooser) {
  if (!model.signals.length) {
    canvas.parentElement.hidden = true;
    chooser.parentElement.hidden = true;
    return;
  }
  const zones = new Set(model.signals.map((signal) => signal.zone)).size;
  model.signals.forEach((signal, k) => {
    chooser.append(new Option(zones > 1 ? `${signal.what}, ${signal.zone}` : signal.what, k));
  });
  chooser.addEventListener("change", () => timeline.changed());
  timeline.watch(() => drawSignal(model, timeline, canvas, model.signals[Number(chooser.value)]));
}

function drawSignal(model, timeline, canvas, signal) {
  const colours = theme(), { pen, width, height } = sized(canvas, 112);
  const scale = timeScale(timeline, width), top = 26, bottom = height - 10;
  const values = signal.forecast ? [...signal.value, ...signal.forecast.value] : signal.value;
  let [low, high] = [Math.min(0, ...values), Math.max(0, ...values)];
  if (high === low) high = low + 1;
  const y = (value) => bottom - ((value - low) / (high - low)) * (bottom - top);
  drawTimeGrid(pen, timeline, scale, top, bottom, colours, false);
  drawValueGrid(pen, scale, y, low, high, 3, (value) => digits(value, 3), colours);
  pen.save();
  pen.beginPath(); pen.rect(scale.left, top - 2, scale.right - scale.left, bottom - top + 4); pen.clip();
  if (signal.forecast) strokeSteps(pen, scale, y, signal.forecast, colours.soft, [4, 3], 1);
  fillSteps(pen, scale, y, signal, colours.accent);
  strokeSteps(pen, scale, y, signal, colours.accent, [], 1.75);
  pen.restore();
  pen.textAlign = "left"; pen.textBaseline = "top"; pen.fillStyle = colours.soft;
  const name = signal.what === "CO2" ? "CO2 intensity" : "Price";
  pen.fillText(`${name}, ${signal.unit}${signal.forecast ? " (dashed: forecast)" : ""}`, scale.left, 6);
  const range = `${digits(Math.min(...signal.value), 3)} to ${digits(Math.max(...signal.value), 3)} ${signal.unit}`;
  canvas.setAttribute("aria-label", `${name} over time in zone ${signal.zone}: ${range}`);
}

function strokeSteps(pen, scale, y, steps, colour, dash, weight) {
  pen.strokeStyle = colour; pen.lineWidth = weight; pen.setLineDash(dash);
  pen.beginPath();
  steps.start.forEach((start, k) => {
    const end = k + 1 < steps.start.length ? steps.start[k + 1] : steps.end;
    pen.lineTo(scale.x(start), y(steps.value[k]));
    pen.lineTo(scale.x(end), y(steps.value[k]));
  });
  pen.stroke(); pen.setLineDash([]);
}

function fillSteps(pen, scale, y, steps, colour) {
  pen.fillStyle = colour; pen.globalAlpha = 0.12;
  steps.start.forEach((start, k) => {
    const end = k + 1 < steps.start.length ? steps.start[k + 1] : steps.end;
    const [from, to] = [scale.x(start), scale.x(end)];
    if (to < scale.left || from > scale.right) return;
    pen.fillRect(from, y(steps.value[k]), to - from, y(0) - y(steps.value[k]));
  });
  pen.globalAlpha = 1;
}

function powerChart(model, timeline, canvas, legend) {
  const used = model.parts.map((_, part) => model.power_watts.some((watts, k) => k % 6 === part && watts > 0));
  model.parts.forEach((part, k) => {
    if (used[k]) legend.append(legendItem(`part ${part}`, part));
  });
  if (model.wake_at.length) {
    const joules = model.wake_joules.reduce((sum, j) => sum + j, 0);
    legend.append(legendItem("part wake", `wakes that take no time (ticks below): ${withPrefix(joules, "J")}`));
  }
  model.power_peak = peakPower(model);
  canvas.setAttribute("aria-label", `Power over time, stacked by part; the peak is ${withPrefix(model.power_peak, "W")}`);
  timeline.watch(() => drawPower(model, timeline, canvas));
}

function legendItem(kind, text) {
  return element("li", {}, element("span", { className: kind }), text);
}

function peakPower(model) {
  let peak = 0;
  for (let k = 0; k + 1 < model.power_edge.length; k++) {
    let sum = 0;
    for (let part = 0; part < 6; part++) sum += Math.max(0, model.power_watts[6 * k + part]);
    peak = Math.max(peak, sum);
  }
  return peak;
}

function drawPower(model, timeline, canvas) {
  const colours = theme(), { pen, width, height, ratio } = sized(canvas, 190);
  const scale = timeScale(timeline, width), top = 26, bottom = height - 26;
  const columns = powerColumns(model, timeline, scale, ratio);
  const high = Math.max(columns.peak || model.power_peak || 1, model.power_cap_w || 0) * 1.04;
  const y = (watts) => bottom - (watts / high) * (bottom - top);
  drawTimeGrid(pen, timeline, scale, top, bottom, colours, true);
  drawValueGrid(pen, scale, y, 0, high, 4, (watts) => withPrefix(watts, "W"), colours);
  for (let part = 5; part >= 0; part--) {
    pen.fillStyle = colours[model.parts[part]];
    pen.beginPath(); pen.moveTo(scale.left, bottom);
    for (let c = 0; c < columns.count; c++) {
      let watts = 0;
      for (let p = 0; p <= part; p++) watts += columns.watts[6 * c + p];
      pen.lineTo(scale.left + c / ratio, y(watts));
      pen.lineTo(scale.left + (c + 1) / ratio, y(watts));
    }
    pen.lineTo(scale.right, bottom); pen.fill();
  }
  if (model.power_cap_w) drawCap(pen, scale, y(model.power_cap_w), model.power_cap_w, colours);
  pen.fillStyle = colours.wake;
  for (const at of model.wake_at) if (at >= timeline.low && at <= timeline.high) pen.fillRect(scale.x(at) - 0.75, bottom, 1.5, 5);
  pen.textAlign = "left"; pen.textBaseline = "top"; pen.fillStyle = colours.soft;
  pen.fillText(model.exact_power ? "Power" : "Power (means over short times)", scale.left, 6);
}

function drawCap(pen, scale, level, watts, colours) {
  pen.strokeStyle = colours.ink; pen.lineWidth = 1.25; pen.setLineDash([6, 4]);
  pen.beginPath(); pen.moveTo(scale.left, level); pen.lineTo(scale.right, level); pen.stroke();
  pen.setLineDash([]);
  pen.textAlign = "right"; pen.textBaseline = "bottom"; pen.fillStyle = colours.ink;
  pen.fillText(`cap ${withPrefix(watts, "W")}`, scale.right - 4, level - 2);
}

// Mean power of each pixel column, by part.
function powerColumns(model, timeline, scale, ratio) {
  const count = Math.max(1, Math.round((scale.right - scale.left) * ratio)), watts = new Float64Array(6 * count);
  const edge = model.power_edge, last = edge.length - 2, dt = timeline.span / count;
  let k = Math.max(0, firstAbove(edge, timeline.low, 0, edge.length) - 1), peak = 0;
  for (let c = 0; c < count; c++) {
    const from = timeline.low + c * dt, to = from + dt;
    while (k <= last && edge[k + 1] <= from) k++;
    for (let j = k; j <= last && edge[j] < to; j++) {
      const share = (Math.min(to, edge[j + 1]) - Math.max(from, edge[j])) / dt;
      if (share > 0) for (let part = 0; part < 6; part++) watts[6 * c + part] += share * Math.max(0, model.power_watts[6 * j + part]);
    }
    let sum = 0;
    for (let part = 0; part < 6; part++) sum += watts[6 * c + part];
    peak = Math.max(peak, sum);
  }
  return { count, watts, peak };
}
