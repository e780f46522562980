// Putting the page together: charts, keys, pointers, and one chosen task for all of them.

const byId = (id) => document.getElementById(id);

async function start() {
  const model = modelOf(await readBlock(byId("data").textContent));
  const timeline = new Timeline(model);
  signalChart(model, timeline, byId("signal-canvas"), byId("signal"));
  powerChart(model, timeline, byId("power-canvas"), byId("power-legend"));
  let table;
  const choose = (task) => {
    gantt.choose(task);
    table.choose(task);
    drawFrontier(model, task, byId("frontier"), byId("frontier-note"), byId("frontier-facts"));
    byId("said").textContent = `${model.task_names[task]}: ${taskFacts(model, task, kindOf(model, task)).map((fact) => fact.join(" ")).join(", ")}`;
  };
  const gantt = new Gantt(model, timeline, byId("gantt-canvas"), byId("tip"), choose);
  byId("gantt-canvas").setAttribute("aria-label", `Timeline of ${model.segments.toLocaleString("en")} runs on ${model.processors.toLocaleString("en")} processors`);
  timeline.draw();
  window.downclock = { model, timeline, gantt, firstDraw_ms: performance.now() };
  await addCurves(model);
  table = new TaskTable(model, byId("table-scroll"), byId("table"), byId("found"), choose);
  window.downclock.table = table;
  ganttLegend(model, gantt, byId("gantt-legend"));
  connectControls(model, timeline, gantt, table);
  connectPointers(model, timeline, gantt, choose);
  connectKeys(model, timeline, gantt, choose);
  const first = Math.max(0, model.task_segment.findIndex((segment) => segment >= 0));
  connectPage(timeline, table, () => {
    drawSlack(model, byId("slack"), byId("slack-note"));
    drawFrontier(model, gantt.chosen < 0 ? first : gantt.chosen, byId("frontier"), byId("frontier-note"), byId("frontier-facts"));
  });
  document.documentElement.dataset.ready = "yes";
}

function kindOf(model, task) {
  return model.task_where[task] < 0 ? -1 : model.processor_kind[model.task_where[task]];
}

function connectControls(model, timeline, gantt, table) {
  byId("colour-by").addEventListener("change", (event) => {
    gantt.colourBy(event.target.value);
    ganttLegend(model, gantt, byId("gantt-legend"));
  });
  byId("zoom-in").addEventListener("click", () => timeline.zoom(0.5));
  byId("zoom-out").addEventListener("click", () => timeline.zoom(2));
  byId("zoom-fit").addEventListener("click", () => fit(timeline, gantt));
  byId("rows-tall").addEventListener("click", () => gantt.taller(1.6));
  byId("rows-flat").addEventListener("click", () => gantt.taller(1 / 1.6));
  const asleep = new Set(model.processor_server.slice(model.lanes)).size;
  byId("folded").hidden = !asleep;
  byId("folded").firstElementChild.textContent = asleep === 1 ? "One server sleeps all the time." : `${asleep.toLocaleString("en")} servers sleep all the time.`;
  byId("unfold").addEventListener("click", () => { gantt.folded = false; byId("folded").hidden = true; fit(timeline, gantt); });
  const used = new Set(model.task_status);
  model.statuses.forEach((status, k) => used.has(k) && byId("status").append(new Option(status, k)));
  byId("search").addEventListener("input", (event) => table.search(event.target.value));
  byId("status").addEventListener("change", (event) => table.only(event.target.value));
}

function fit(timeline, gantt) {
  timeline.rowHeight = 0;
  timeline.top = 0;
  timeline.all();
  gantt.scroll(0);
}

function connectPointers(model, timeline, gantt, choose) {
  const canvas = gantt.canvas, held = new Map();
  let moved = 0, apart = 0;
  const place = (event) => {
    const box = canvas.getBoundingClientRect();
    return [event.clientX - box.left, event.clientY - box.top];
  };
  canvas.addEventListener("pointerdown", (event) => {
    held.set(event.pointerId, place(event));
    canvas.setPointerCapture(event.pointerId);
    moved = 0;
    apart = distance(held);
  });
  canvas.addEventListener("pointermove", (event) => {
    const [x, y] = place(event), before = held.get(event.pointerId);
    if (!before) return hover(model, gantt, x, y, event.pointerType);
    held.set(event.pointerId, [x, y]);
    if (held.size === 2) {
      const now = distance(held), middle = ([...held.values()][0][0] + [...held.values()][1][0]) / 2;
      if (apart > 0 && now > 0) timeline.zoom(apart / now, gantt.scale.at(middle));
      apart = now;
      moved = 99;
      return undefined;
    }
    moved += Math.abs(x - before[0]) + Math.abs(y - before[1]);
    if (moved < 4) return undefined;
    canvas.classList.add("moving");
    hide(gantt);
    timeline.pan((before[0] - x) * (timeline.span / (gantt.scale.right - gantt.scale.left)));
    if (event.pointerType === "mouse") gantt.scroll((before[1] - y) / gantt.row);
    return undefined;
  });
  const release = (event) => {
    held.delete(event.pointerId);
    canvas.classList.remove("moving");
  };
  canvas.addEventListener("pointerup", (event) => {
    release(event);
    if (moved >= 4) return;
    const found = gantt.under(...place(event));
    if (found && found.task >= 0) choose(found.task);
    hover(model, gantt, ...place(event), event.pointerType);
  });
  canvas.addEventListener("pointercancel", release);
  canvas.addEventListener("pointerleave", (event) => { if (!held.size && event.pointerType !== "touch") hide(gantt); });
  canvas.addEventListener("dblclick", (event) => timeline.zoom(0.4, gantt.scale.at(place(event)[0])));
  canvas.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return;
    event.preventDefault();
    hide(gantt);
    if (event.shiftKey) gantt.scroll((event.deltaY || event.deltaX) / gantt.row / 3);
    else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) timeline.pan((event.deltaX / canvas.clientWidth) * timeline.span);
    else timeline.zoom(Math.exp(Math.max(-120, Math.min(120, event.deltaY)) * 0.0022), gantt.scale.at(place(event)[0]));
  }, { passive: false });
}

function distance(held) {
  const [a, b] = [...held.values()];
  return b ? Math.hypot(a[0] - b[0], a[1] - b[1]) : 0;
}

function hover(model, gantt, x, y, pointer) {
  const found = gantt.under(x, y), before = gantt.hovered;
  gantt.hovered = found;
  if (!found) return hide(gantt);
  if (before?.task !== found.task) gantt.timeline.changed();
  fillTip(model, gantt.tip, found);
  gantt.tip.hidden = false;
  const { offsetWidth: wide, offsetHeight: tall } = gantt.tip, room = gantt.canvas.clientWidth;
  const above = pointer === "touch" || y > gantt.plotHeight / 2;
  gantt.tip.style.left = `${Math.max(4, Math.min(x + 16 + wide > room ? x - wide - 16 : x + 16, room - wide - 4))}px`;
  gantt.tip.style.top = `${above ? y - tall - 12 : y + 16}px`;
  return undefined;
}

function hide(gantt) {
  gantt.tip.hidden = true;
  if (gantt.hovered) { gantt.hovered = null; gantt.timeline.changed(); }
}

function fillTip(model, tip, found) {
  const kind = model.processor_kind[found.lane], i = found.segment;
  const title = i >= 0 ? model.task_names[found.task] : `${processorText(model, found.lane)} ${["is awake and idle", "is waking", "is asleep", "is down"][found.state]}`;
  const rows = i >= 0 ? segmentFacts(model, found, kind) : [["at", instant(model, found.at)], ...(found.state === 0 ? [["draws", `${digits(model.kinds[kind].idle_w)} W`]] : [])];
  tip.replaceChildren(element("strong", {}, title), element("dl", {}, ...pairsOf(rows)));
}

function segmentFacts(model, found, kind) {
  const i = found.segment, task = found.task, seconds = model.segment_end[i] - model.segment_start[i];
  const facts = [
    ["application", model.application_names[model.task_application[task]]],
    ["processor", processorText(model, found.lane)],
    ["start", instant(model, model.segment_start[i])],
    ["end", instant(model, model.segment_end[i])],
    ["runs", duration(seconds)],
    ["clock", clockText(model, kind, model.segment_core[i], model.segment_memory[i])],
    ["power", withPrefix(model.segment_watts[i], "W")],
    ["energy", withPrefix(model.segment_watts[i] * seconds, "J")],
    ["slack", Number.isNaN(model.task_slack[task]) ? "–" : Number.isFinite(model.task_slack[task]) ? duration(model.task_slack[task]) : "no deadline"],
  ];
  if (model.segment_share[i] < 0.9999) facts.push(["part of the task", `${digits(100 * model.segment_share[i], 3)} %`]);
  if (model.task_attempts[task] > 0) facts.push(["attempt", `${model.segment_attempt[i] + 1} of ${model.task_attempts[task] + 1}`]);
  if (model.task_processors[task] > 1) facts.push(["processors", String(model.task_processors[task])]);
  return facts;
}

function connectKeys(model, timeline, gantt, choose) {
  const step = (by) => {
    let task = gantt.chosen;
    for (let k = 0; k < model.tasks; k++) {
      task = (task + by + model.tasks) % model.tasks;
      if (model.task_segment[task] >= 0) return choose(task);
    }
    return undefined;
  };
  const keys = {
    ArrowLeft: () => timeline.pan(-timeline.span / 8),
    ArrowRight: () => timeline.pan(timeline.span / 8),
    ArrowUp: () => gantt.scroll(-Math.max(1, gantt.rows / 8)),
    ArrowDown: () => gantt.scroll(Math.max(1, gantt.rows / 8)),
    "+": () => timeline.zoom(0.6),
    "=": () => timeline.zoom(0.6),
    "-": () => timeline.zoom(1 / 0.6),
    "0": () => fit(timeline, gantt),
    Home: () => timeline.show(timeline.first, timeline.span),
    End: () => timeline.show(timeline.last, timeline.span),
    n: () => step(1),
    p: () => step(-1),
  };
  gantt.canvas.addEventListener("keydown", (event) => {
    const act = keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act || event.ctrlKey || event.metaKey || event.altKey) return;
    event.preventDefault();
    hide(gantt);
    act();
  });
}

function connectPage(timeline, table, drawOthers) {
  const redraw = () => timeline.changed();
  let wide = 0;
  new ResizeObserver(() => {
    redraw();
    if (wide !== window.innerWidth) { wide = window.innerWidth; drawOthers(); }
  }).observe(byId("gantt-chart"));
  drawOthers();
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  matchMedia("print").addEventListener("change", () => timeline.draw());
  window.addEventListener("beforeprint", () => { timeline.draw(); table.draw(0, 60); });
  window.addEventListener("afterprint", () => { timeline.draw(); table.draw(); });
}

start().catch((error) => {
  const why = `The charts cannot be drawn in this browser: ${error.message}`;
  document.querySelector("main").prepend(element("p", { className: "verdict bad" }, why));
  console.error(error);
});
