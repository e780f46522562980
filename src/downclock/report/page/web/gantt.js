// The plan: a row per processor, painted pixel by pixel, so that 100,000 bars move smoothly.

class Gantt {
  constructor(model, timeline, canvas, tip, onPick) {
    Object.assign(this, { model, timeline, canvas, tip, onPick, chosen: -1, hovered: null, folded: true });
    this.colourBy("clock");
    timeline.watch(() => this.draw());
  }

  colourBy(by) {
    this.by = by;
    this.colours = segmentColours(this.model, by);
    this.timeline.changed();
  }

  // Rows: all processors, or without the servers at the end that sleep all the time.
  get lanes() { return this.folded ? this.model.lanes : this.model.processors; }

  // Height of the rows' area: as tall as the rows ask, within reason.
  get plotHeight() {
    const most = window.innerWidth < 560 ? 380 : 560;
    return Math.max(60, Math.min(most, this.lanes * 24));
  }

  get least() { return this.plotHeight / this.lanes; }

  get row() { return Math.max(this.timeline.rowHeight, this.least); }

  get rows() { return this.plotHeight / this.row; }

  scroll(rows) {
    this.timeline.top = Math.min(Math.max(0, this.timeline.top + rows), Math.max(0, this.lanes - this.rows));
    this.timeline.changed();
  }

  taller(factor, around = this.rows / 2) {
    const fixed = this.timeline.top + around, share = around / this.rows;
    this.timeline.rowHeight = Math.min(32, Math.max(this.least, this.row * factor));
    this.timeline.top = fixed - share * this.rows;
    this.scroll(0);
  }

  draw() {
    const height = this.plotHeight + 26, theme_ = theme();
    const { pen, width, ratio } = sized(this.canvas, height);
    const scale = timeScale(this.timeline, width);
    this.scale = scale;
    this.paint(pen, scale, ratio, theme_);
    drawTimeGrid(pen, this.timeline, scale, this.plotHeight, this.plotHeight + 4, theme_, true);
    this.labels(pen, scale, theme_);
    this.names(pen, scale);
    this.marks(pen, scale, theme_);
  }

  paint(pen, scale, ratio, theme_) {
    const width = Math.max(1, Math.round((scale.right - scale.left) * ratio)), height = Math.round(this.plotHeight * ratio);
    if (!this.image || this.image.width !== width || this.image.height !== height) this.image = new ImageData(width, height);
    const pixels = new Uint32Array(this.image.data.buffer), panel = pixel(rgb(theme_.panel));
    pixels.fill(panel);
    const shade = ["awake", "waking", "asleep", "down"].map((name) => pixel(rgb(theme_[name])));
    const line = new Uint32Array(width), row = this.row * ratio, gap = row >= 14 ? 2 : row >= 5 ? 1 : 0;
    const first = Math.floor(this.timeline.top), last = Math.min(this.lanes - 1, Math.ceil(this.timeline.top + this.rows));
    let painted = -1;
    for (let lane = first; lane <= last; lane++) {
      const ends = lane + 1 < this.lanes && this.model.processor_server[lane + 1] !== this.model.processor_server[lane];
      const from = Math.round((lane - this.timeline.top) * row), to = Math.max(from + 1, Math.round((lane + 1 - this.timeline.top) * row) - (ends ? 2 * gap : gap));
      if (from === painted || to <= 0 || from >= height) continue;
      painted = from;
      this.line(lane, line, width, shade);
      for (let y = Math.max(0, from); y < Math.min(height, to); y++) pixels.set(line, y * width);
      if (to - from > 1) this.seam(lane, pixels, width, Math.max(0, to), Math.min(height, Math.round((lane + 1 - this.timeline.top) * row)));
    }
    pen.putImageData(this.image, Math.round(scale.left * ratio), 0);
  }

  // One row of pixels: what the server does, and over it what the processor runs.
  line(lane, line, width, shade) {
    const { model, timeline } = this, perSecond = width / timeline.span, low = timeline.low;
    line.fill(shade[2]);
    const server = model.processor_server[lane];
    for (let s = model.state_first[server]; s < model.state_first[server + 1]; s++)
      fillSpan(line, width, (model.state_start[s] - low) * perSecond, (model.state_end[s] - low) * perSecond, shade[model.state_kind[s]]);
    const end = model.segment_first[lane + 1], { fill, edge } = this.colours;
    let i = firstAbove(model.segment_end, low, model.segment_first[lane], end);
    for (; i < end && model.segment_start[i] < timeline.high; i++) {
      const from = (model.segment_start[i] - low) * perSecond, to = (model.segment_end[i] - low) * perSecond;
      fillSpan(line, width, from, to, fill[i]);
      const x = Math.round(from);
      if (to - from > 3 && x >= 0 && x < width) line[x] = edge[i];
    }
  }

  // The gap below a row, filled where a gang goes on in the next one.
  seam(lane, pixels, width, from, to) {
    const { model, timeline } = this, perSecond = width / timeline.span, end = model.segment_first[lane + 1];
    for (let i = firstAbove(model.segment_end, timeline.low, model.segment_first[lane], end); i < end && model.segment_start[i] < timeline.high; i++) {
      if (model.segment_below[i] < 0) continue;
      const first = (model.segment_start[i] - timeline.low) * perSecond, last = (model.segment_end[i] - timeline.low) * perSecond;
      for (let y = from; y < to; y++) fillSpan(pixels.subarray(y * width, (y + 1) * width), width, first, last, this.colours.fill[i]);
    }
  }

  labels(pen, scale, theme_) {
    const { model } = this, server = model.processor_server;
    pen.textAlign = "right"; pen.textBaseline = "middle";
    pen.save(); pen.beginPath(); pen.rect(0, 0, scale.left - 4, this.plotHeight); pen.clip();
    const first = Math.floor(this.timeline.top), last = Math.min(this.lanes - 1, Math.ceil(this.timeline.top + this.rows));
    let free = -Infinity;
    for (let lane = first; lane <= last; lane++) {
      const head = lane === first || server[lane] !== server[lane - 1];
      const each = this.row >= 13, y = (lane - this.timeline.top + 0.5) * this.row;
      if ((!each && !head) || y < free) continue;
      free = y + 13;
      pen.fillStyle = head ? theme_.ink : theme_.soft;
      const text = each && !head ? `/${model.processor_place[lane] + 1}` : each ? processorText(model, lane) : model.server_names[server[lane]];
      pen.fillText(shortened(pen, text, scale.left - 14), scale.left - 9, Math.max(7, y));
    }
    pen.restore();
  }

  // Task names inside bars that have room for them.
  names(pen, scale) {
    if (this.row < 16) return;
    const { model, timeline } = this;
    pen.textAlign = "left"; pen.textBaseline = "middle";
    const first = Math.max(0, Math.floor(timeline.top) - 16), last = Math.min(this.lanes - 1, Math.ceil(timeline.top + this.rows));
    for (let lane = first; lane <= last; lane++) {
      const end = model.segment_first[lane + 1];
      for (let i = firstAbove(model.segment_end, timeline.low, model.segment_first[lane], end); i < end && model.segment_start[i] < timeline.high; i++) {
        const from = Math.max(scale.left, scale.x(model.segment_start[i])), room = Math.min(scale.right, scale.x(model.segment_end[i])) - from - 10;
        const y = (lane - timeline.top + 0.5 * model.segment_rows[i] - 0.03) * this.row;
        if (room < 34 || !model.segment_rows[i] || y < 6 || y > this.plotHeight - 4) continue;
        const text = shortened(pen, model.task_names[model.segment_task[i]], room);
        pen.fillStyle = isDark(this.colours.fill[i]) ? "#ffffff" : "#101418";
        if (text.length > 2) pen.fillText(text, from + 5, y);
      }
    }
  }

  // Outlines of the chosen and the hovered task.
  marks(pen, scale, theme_) {
    pen.save(); pen.beginPath(); pen.rect(scale.left, 0, scale.right - scale.left, this.plotHeight); pen.clip();
    for (const [task, weight] of [[this.hovered?.task ?? -1, 1.5], [this.chosen, 2.5]]) {
      if (task < 0) continue;
      pen.strokeStyle = theme_.ink; pen.lineWidth = weight;
      for (const i of this.segmentsOf(task)) {
        const x = scale.x(this.model.segment_start[i]), y = (this.model.segment_processor[i] - this.timeline.top) * this.row;
        const rows = this.model.segment_rows[i];
        if (rows) pen.strokeRect(x, y + 0.5, Math.max(2, scale.x(this.model.segment_end[i]) - x), Math.max(2, rows * this.row - 2));
      }
    }
    drawWorkflow(this, pen, scale, theme_);
    pen.restore();
  }

  segmentsOf(task) {
    const { model } = this;
    model.by_task ??= grouped(model.segment_task, model.tasks);
    return model.by_task.order.subarray(model.by_task.first[task], model.by_task.first[task + 1]);
  }

  // What is under a point: a lane, and the segment or the state there.
  under(x, y) {
    const { model, scale, timeline } = this;
    if (!scale || x < scale.left || x > scale.right || y < 0 || y >= this.plotHeight) return null;
    const lane = Math.floor(timeline.top + y / this.row), at = scale.at(x);
    if (lane < 0 || lane >= this.lanes) return null;
    const near = timeline.span / (scale.right - scale.left), end = model.segment_first[lane + 1];
    const i = firstAbove(model.segment_end, at - near, model.segment_first[lane], end);
    if (i < end && model.segment_start[i] <= at + near) return { lane, at, segment: i, task: model.segment_task[i] };
    return { lane, at, segment: -1, task: -1, state: this.stateAt(model.processor_server[lane], at) };
  }

  stateAt(server, at) {
    const { model } = this;
    for (let s = model.state_first[server]; s < model.state_first[server + 1]; s++)
      if (model.state_start[s] <= at && at < model.state_end[s]) return model.state_kind[s];
    return 2;
  }

  choose(task) {
    this.chosen = task;
    const { model } = this;
    if (task >= 0 && model.task_segment[task] >= 0) {
      const lane = model.task_where[task];
      if (lane < this.timeline.top || lane + 1 > this.timeline.top + this.rows) this.scroll(lane - this.rows / 2 - this.timeline.top);
      this.timeline.reveal(model.task_start[task], model.task_end[task]);
    } else this.timeline.changed();
  }
}

function fillSpan(line, width, from, to, colour) {
  const first = Math.max(0, Math.round(from)), last = Math.min(width, Math.max(Math.round(from) + 1, Math.round(to)));
  if (first < last) line.fill(colour, first, last);
}

function shortened(pen, text, room) {
  if (text.length * 7.2 <= room || pen.measureText(text).width <= room) return text;
  const most = Math.max(1, Math.floor(room / 7));
  return text.length > most ? `${text.slice(0, most - 1)}…` : text;
}

function ganttLegend(model, gantt, list) {
  list.replaceChildren();
  if (gantt.by === "application") {
    applicationRank(model);
    const shown = model.application_order.slice(0, 12);
    shown.forEach((application, place) => list.append(swatchItem(APPLICATIONS[place], model.application_names[application])));
    const more = model.application_names.length - shown.length;
    if (more > 0) list.append(element("li", {}, `and ${more.toLocaleString("en")} more, in the same colours again`));
  } else if (gantt.by === "clock") {
    const [low, high] = clockRange(model);
    if (model.segments) list.append(rampItem(CLOCK_RAMP, `core clock ${digits(low, 3)} ×`, `${digits(high, 3)} × default`));
  } else {
    list.append(rampItem(SLACK_RAMP, "slack: none", "all of the time until the deadline"));
    if (model.task_deadline.some((deadline) => !Number.isFinite(deadline))) list.append(swatchItem(NO_DEADLINE, "no deadline"));
  }
  const used = new Set(model.state_kind);
  for (const [kind, name, text] of [[0, "awake", "awake, idle"], [1, "waking", "waking"], [3, "down", "down"]])
    if (used.has(kind)) list.append(swatchItem(`var(--${name})`, text));
  list.append(swatchItem("var(--asleep)", "asleep"));
}

function swatchItem(colour, text) {
  const item = legendItem("swatch", text);
  item.firstChild.style.background = colour;
  return item;
}

function rampItem(stops, low, high) {
  const style = `background: linear-gradient(90deg, ${stops.join(", ")})`;
  return element("li", {}, low, element("span", { className: "ramp", style }), high);
}
