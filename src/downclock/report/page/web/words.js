// Quantities as text, and places and times as people say them; text as parts of the page.

function element(name, properties, ...inside) {
  const node = Object.assign(document.createElement(name), properties);
  node.append(...inside);
  return node;
}

// Pairs of a name and a text as what is in a <dl>.
function pairsOf(facts) {
  return facts.flatMap(([name, text]) => [element("dt", {}, name), element("dd", {}, text)]);
}

function digits(value, most = 4) {
  if (value === 0) return "0";
  const size = Math.abs(value);
  if (size >= 1e6 || size < 1e-3) return value.toPrecision(3);
  const decimals = Math.max(0, most - 1 - Math.floor(Math.log10(size)));
  const text = value.toFixed(Math.min(decimals, 6));
  return text.includes(".") ? text.replace(/\.?0+$/, "") : text;
}

function withPrefix(value, unit) {
  for (const [prefix, size] of [["G", 1e9], ["M", 1e6], ["k", 1e3]])
    if (Math.abs(value) >= size) return `${digits(value / size)} ${prefix}${unit}`;
  return `${digits(value)} ${unit}`;
}

function duration(seconds) {
  if (!Number.isFinite(seconds)) return seconds > 0 ? "no limit" : "–";
  const size = Math.abs(seconds), sign = seconds < 0 ? "−" : "";
  if (size < 120) return `${sign}${digits(size, 3)} s`;
  if (size < 7200) return `${sign}${digits(size / 60, 3)} min`;
  if (size < 172800) return `${sign}${digits(size / 3600, 3)} h`;
  return `${sign}${digits(size / 86400, 3)} days`;
}

// An instant: clock time where the problem has a calendar, else time since the start.
function instant(model, seconds, step = 1) {
  if (!Number.isFinite(seconds)) return "none";
  if (model.epoch_ms === null) return sinceStart(seconds, step);
  const local = model.epoch_ms + model.offset_min * 60000, least = step < 60 ? 1000 : 60000;
  const date = new Date(Math.round((local + seconds * 1000) / least) * least);
  const two = (number) => String(number).padStart(2, "0");
  const time = `${two(date.getUTCHours())}:${two(date.getUTCMinutes())}`;
  const exact = step < 60 ? `${time}:${two(date.getUTCSeconds())}` : time;
  const day = `${date.getUTCDate()} ${MONTHS[date.getUTCMonth()]}`;
  if (step >= 86400) return day;
  const sameDay = Math.floor(date.getTime() / 86400000) === Math.floor(local / 86400000);
  return sameDay ? exact : `${day} ${exact}`;
}

const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

function sinceStart(seconds, step) {
  if (step >= 86400) return `day ${digits(seconds / 86400, 4)}`;
  if (step >= 3600) return `${digits(seconds / 3600, 5)} h`;
  if (step >= 60 && seconds >= 3600) return `${Math.floor(seconds / 3600)} h ${Math.round((seconds % 3600) / 60)} min`;
  if (step >= 60) return `${digits(seconds / 60, 5)} min`;
  return `${digits(seconds, seconds >= 100 ? 3 + Math.floor(Math.log10(seconds)) : 5)} s`;
}

function clockText(model, kind, core, memory) {
  const spec = model.kinds[kind];
  const say = (ratio, mhz) => (mhz === null ? `${digits(ratio, 3)} × default` : `${Math.round(ratio * mhz)} MHz`);
  const text = say(core, spec.core_mhz);
  return spec.scales_memory && memory !== undefined ? `${text}, memory ${say(memory, spec.memory_mhz)}` : text;
}

// The core clock alone, short enough for a table.
function coreText(model, kind, core) {
  const mhz = model.kinds[kind].core_mhz;
  return mhz === null ? `${digits(core, 3)} ×` : `${Math.round(core * mhz)} MHz`;
}

function processorText(model, processor) {
  return `${model.server_names[model.processor_server[processor]]}/${model.processor_place[processor] + 1}`;
}

// Round steps for axes.
function numberTicks(low, high, most) {
  const raw = (high - low) / Math.max(1, most);
  const size = 10 ** Math.floor(Math.log10(raw));
  const step = [1, 2, 5, 10].map((k) => k * size).find((s) => s >= raw * 0.999);
  return ticksOf(low, high, step);
}

const TIME_STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800, 1209600, 2592000];

function timeTicks(low, high, most, offset = 0) {
  const raw = (high - low) / Math.max(1, most);
  if (raw < 1 || raw > TIME_STEPS.at(-1)) return numberTicks(low, high, most);
  return ticksOf(low, high, TIME_STEPS.find((s) => s >= raw), offset);
}

function ticksOf(low, high, step, offset = 0) {
  const ticks = [];
  for (let k = Math.ceil((low + offset) / step - 1e-9); k * step - offset <= high + step * 1e-9 && ticks.length < 200; k++) ticks.push(k * step - offset || 0);
  return { step, ticks };
}

// Seconds from the local midnight to the problem's start, so that ticks fall on whole hours.
function midnightOffset(model) {
  if (model.epoch_ms === null) return 0;
  const local = model.epoch_ms / 1000 + model.offset_min * 60;
  return ((local % 86400) + 86400) % 86400;
}
