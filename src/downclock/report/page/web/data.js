// Reading the block that pack.py writes: a JSON header and columns, deflated, in base64.

const KINDS = { u8: Uint8Array, u16: Uint16Array, u32: Uint32Array, f32: Float32Array };

async function readBlock(text) {
  const packed = Uint8Array.fromBase64 ? Uint8Array.fromBase64(text) : bytesOf(atob(text));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  const buffer = await new Response(stream).arrayBuffer();
  const length = new DataView(buffer).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const columns = {};
  for (const column of header.columns) columns[column.name] = columnOf(buffer, 4 + length, column);
  return { header, columns };
}

function bytesOf(text) {
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

function columnOf(buffer, base, { kind, at, n, low, step, none }) {
  const raw = new KINDS[kind](buffer, base + at, n);
  if (step === undefined) return raw;
  const values = new Float64Array(n);
  for (let i = 0; i < n; i++) values[i] = raw[i] === none ? Infinity : low + raw[i] * step;
  return values;
}

// Everything the charts draw. A task's own figures are those of its last attempt.
function modelOf({ header, columns }) {
  const model = { ...header, ...columns };
  model.tasks = model.task_names.length;
  model.processors = model.processor_server.length;
  model.segments = model.segment_task.length;
  model.segment_first = firsts(model.segment_processor, model.processors);
  model.state_first = firsts(model.state_server, model.server_names.length);
  model.processor_place = places(model.processor_server);
  model.lanes = lanesInUse(model);
  addTasks(model);
  joinGangs(model);
  return model;
}

// Processors up to the last server that is ever awake; all of them where none is.
function lanesInUse(model) {
  const busy = new Set(Array.from(model.segment_processor, (p) => model.processor_server[p]));
  model.state_server.forEach((server, s) => model.state_kind[s] !== 2 && busy.add(server));
  let lanes = model.processors;
  while (lanes > 0 && !busy.has(model.processor_server[lanes - 1])) lanes--;
  return lanes || model.processors;
}

// The frontiers come in a block of their own, read after the first picture is there.
async function addCurves(model) {
  if (document.readyState === "loading") await new Promise((done) => document.addEventListener("DOMContentLoaded", done, { once: true }));
  Object.assign(model, (await readBlock(document.getElementById("curves").textContent)).columns);
  model.curve_first = prefix(model.curve_size);
  model.curve_of = curveIndex(model);
}

// First row of each owner in a column sorted by owner, and the end.
function firsts(owner, count) {
  const sizes = new Uint32Array(count);
  for (const o of owner) sizes[o]++;
  return prefix(sizes);
}

function prefix(sizes) {
  const first = new Uint32Array(sizes.length + 1);
  for (let i = 0; i < sizes.length; i++) first[i + 1] = first[i] + sizes[i];
  return first;
}

function places(server) {
  const place = new Uint32Array(server.length);
  for (let p = 1; p < server.length; p++) place[p] = server[p] === server[p - 1] ? place[p - 1] + 1 : 0;
  return place;
}

function addTasks(model) {
  const n = model.tasks, S = model.segments;
  const last = new Uint32Array(n), start = new Float64Array(n).fill(Infinity), end = new Float64Array(n).fill(-Infinity);
  const where = new Int32Array(n).fill(-1), segment = new Int32Array(n).fill(-1), clock = new Float64Array(n), share = new Float64Array(n);
  const busy = new Float64Array(n), joules = new Float64Array(n), width = new Uint32Array(n);
  const { segment_task: task, segment_attempt: attempt, segment_start: from, segment_end: to } = model;
  for (let i = 0; i < S; i++) last[task[i]] = Math.max(last[task[i]], attempt[i]);
  for (let i = 0; i < S; i++) {
    const t = task[i];
    if (attempt[i] !== last[t]) continue;
    if (from[i] < start[t]) { start[t] = from[i]; where[t] = model.segment_processor[i]; segment[t] = i; }
    end[t] = Math.max(end[t], to[i]);
  }
  for (let i = 0; i < S; i++) {
    const t = task[i];
    if (attempt[i] !== last[t]) continue;
    if (from[i] === start[t]) width[t]++;
    joules[t] += (to[i] - from[i]) * model.segment_watts[i];
    busy[t] += to[i] - from[i];
    clock[t] += model.segment_core[i] * model.segment_share[i];
    share[t] += model.segment_share[i];
  }
  const stepOf = (name) => model.columns.find((column) => column.name === name).step;
  const slack = new Float64Array(n), rounding = stepOf("task_deadline") + stepOf("segment_end");
  for (let t = 0; t < n; t++) {
    clock[t] = share[t] > 0 ? clock[t] / share[t] : NaN;
    slack[t] = segment[t] >= 0 && model.task_status[t] === 0 ? model.task_deadline[t] - end[t] : NaN;
    if (Math.abs(slack[t]) <= rounding) slack[t] = 0;
    if (segment[t] < 0) start[t] = end[t] = NaN;
  }
  Object.assign(model, { task_start: start, task_end: end, task_where: where, task_segment: segment, task_clock: clock,
    task_slack: slack, task_busy: busy, task_last_joules: joules, task_width: width, task_attempts: last });
}

function curveIndex(model) {
  const index = new Map();
  model.curve_application.forEach((application, c) => index.set(application * model.kinds.length + model.curve_kind[c], c));
  return (application, kind) => index.get(application * model.kinds.length + kind);
}

// First row in [low, high) whose value is above x, in a rising column.
function firstAbove(column, x, low, high) {
  while (low < high) {
    const middle = (low + high) >> 1;
    if (column[middle] > x) high = middle; else low = middle + 1;
  }
  return low;
}
