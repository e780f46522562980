// The window of time (and rows) that the charts share, and a canvas that is sharp on any screen.

class Timeline {
  constructor(model) {
    this.model = model;
    [this.first, this.last] = busyTime(model);
    this.low = this.first;
    this.high = this.last;
    this.top = 0;
    this.rowHeight = 0;
    this.watchers = [];
    this.queued = false;
    this.frames = 0;
  }

  get span() { return this.high - this.low; }

  watch(draw) { this.watchers.push(draw); }

  changed() {
    if (this.queued) return;
    this.queued = true;
    requestAnimationFrame(() => this.draw());
  }

  draw() {
    this.queued = false;
    this.frames++;
    for (const draw of this.watchers) draw();
  }

  all() {
    [this.low, this.high] = [this.first, this.last];
    this.changed();
  }

  // Zoom by a factor around a time; a factor below 1 shows less time.
  zoom(factor, around = (this.low + this.high) / 2) {
    const whole = this.last - this.first;
    const span = Math.min(whole, Math.max(whole * 1e-7, this.span * factor));
    const share = (around - this.low) / this.span;
    this.show(around - share * span, span);
  }

  pan(seconds) { this.show(this.low + seconds, this.span); }

  show(low, span) {
    this.low = Math.min(Math.max(low, this.first), this.last - span);
    this.high = this.low + span;
    this.changed();
  }

  // Bring a task's time into view, without changing the zoom unless it does not fit.
  reveal(from, to) {
    const span = Math.max(this.span, (to - from) * 1.2);
    if (from < this.low || to > this.high || span > this.span) this.show((from + to) / 2 - span / 2, span);
    else this.changed();
  }
}

// From when to when anything happens, with a little room before it.
function busyTime(model) {
  const last = model.last_s > 0 ? model.last_s : 1;
  let first = last;
  for (const start of model.state_start) first = Math.min(first, start);
  for (const start of model.segment_start) first = Math.min(first, start);
  for (const arrival of model.task_arrival) first = Math.min(first, arrival);
  return [Math.max(0, first - 0.01 * (last - first)), last];
}

// Size a canvas to its box and return its context, in CSS pixels.
function sized(canvas, height) {
  const width = Math.max(120, Math.floor(canvas.parentElement.clientWidth));
  const ratio = Math.min(3, window.devicePixelRatio || 1);
  if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
    canvas.width = Math.round(width * ratio);
    canvas.height = Math.round(height * ratio);
    canvas.style.height = `${height}px`;
  }
  const pen = canvas.getContext("2d");
  pen.setTransform(ratio, 0, 0, ratio, 0, 0);
  pen.clearRect(0, 0, width, height);
  pen.font = '12px system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif';
  return { pen, width, height, ratio };
}

// Left margin of the three charts, so that their times stand above each other.
function gutter(width) { return width < 560 ? 58 : 96; }

const MARGIN_RIGHT = 14;

function timeScale(timeline, width) {
  const left = gutter(width), right = width - MARGIN_RIGHT;
  const x = (seconds) => left + ((seconds - timeline.low) / timeline.span) * (right - left);
  const at = (pixels) => timeline.low + ((pixels - left) / (right - left)) * timeline.span;
  return { left, right, x, at };
}

function drawTimeGrid(pen, timeline, scale, top, bottom, colours, labels) {
  const model = timeline.model;
  const { step, ticks } = timeTicks(timeline.low, timeline.high, (scale.right - scale.left) / 110, midnightOffset(model));
  pen.lineWidth = 1;
  pen.textBaseline = "top";
  pen.textAlign = "center";
  for (const tick of ticks) {
    const x = Math.round(scale.x(tick)) + 0.5;
    if (x < scale.left - 1 || x > scale.right + 1) continue;
    pen.strokeStyle = colours.line;
    pen.beginPath(); pen.moveTo(x, top); pen.lineTo(x, bottom); pen.stroke();
    if (!labels) continue;
    const text = instant(model, tick, step), half = pen.measureText(text).width / 2;
    pen.fillStyle = colours.soft;
    pen.fillText(text, Math.min(Math.max(x, scale.left - 20 + half), scale.right + MARGIN_RIGHT - 2 - half), bottom + 5);
  }
}

function drawValueGrid(pen, scale, y, low, high, most, say, colours) {
  pen.textAlign = "right";
  pen.textBaseline = "middle";
  for (const tick of numberTicks(low, high, most).ticks) {
    const at = Math.round(y(tick)) + 0.5;
    pen.strokeStyle = colours.line;
    pen.beginPath(); pen.moveTo(scale.left, at); pen.lineTo(scale.right, at); pen.stroke();
    pen.fillStyle = colours.soft;
    pen.fillText(say(tick), scale.left - 8, at);
  }
}
