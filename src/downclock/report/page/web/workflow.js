// Gangs as one bar, and the edges of the workflow that a chosen task belongs to.

const MOST_EDGES = 3000;

// Rows of a gang on neighbouring processors: how many from this one down; 0: the one above has it.
function joinGangs(model) {
  const rows = new Uint16Array(model.segments).fill(1), below = new Int32Array(model.segments).fill(-1);
  for (let i = model.segments - 1; i >= 0; i--) {
    const lane = model.segment_processor[i], task = model.segment_task[i], start = model.segment_start[i];
    if (model.task_processors[task] < 2 || lane + 1 >= model.processors) continue;
    if (model.processor_server[lane + 1] !== model.processor_server[lane]) continue;
    const end = model.segment_first[lane + 2];
    let j = firstAbove(model.segment_end, start, model.segment_first[lane + 1], end);
    if (j < end && model.segment_start[j] < start) j++; // it ends at the start, but for rounding
    if (j >= end || model.segment_task[j] !== task || model.segment_start[j] !== start) continue;
    rows[i] = rows[j] + 1;
    rows[j] = 0;
    below[i] = j;
  }
  model.segment_rows = rows;
  model.segment_below = below;
}

// Edges of everything that is connected with a task; each is a place in edge_before.
function workflowOf(model, task) {
  if (!model.edge_before.length || task < 0) return [];
  model.edges_by_before ??= grouped(model.edge_before, model.tasks);
  model.edges_by_after ??= grouped(model.edge_after, model.tasks);
  const seen = new Set([task]), todo = [task], found = [];
  while (todo.length && found.length < MOST_EDGES) {
    const t = todo.pop();
    for (const [by, other] of [[model.edges_by_before, model.edge_after], [model.edges_by_after, model.edge_before]])
      for (let k = by.first[t]; k < by.first[t + 1]; k++) {
        const edge = by.order[k];
        if (other === model.edge_after) found.push(edge);
        if (!seen.has(other[edge])) { seen.add(other[edge]); todo.push(other[edge]); }
      }
  }
  return found;
}

function grouped(owner, count) {
  const first = firsts(owner, count), next = first.slice(), order = new Uint32Array(owner.length);
  for (let e = 0; e < owner.length; e++) order[next[owner[e]]++] = e;
  return { first, order };
}

// Arrows from the end of a task to the start of what waits for it.
function drawWorkflow(gantt, pen, scale, theme_) {
  const { model, timeline } = gantt;
  if (gantt.workflow?.task !== gantt.chosen) gantt.workflow = { task: gantt.chosen, edges: workflowOf(model, gantt.chosen) };
  pen.strokeStyle = pen.fillStyle = theme_.ink;
  for (const edge of gantt.workflow.edges) {
    const from = model.edge_before[edge], to = model.edge_after[edge];
    if (model.task_segment[from] < 0 || model.task_segment[to] < 0) continue;
    const near = from === gantt.chosen || to === gantt.chosen;
    pen.lineWidth = near ? 1.8 : 1;
    pen.globalAlpha = near ? 1 : 0.55;
    const middle = (task) => (model.task_where[task] - timeline.top + 0.5 * Math.max(1, model.segment_rows[model.task_segment[task]])) * gantt.row;
    const x0 = scale.x(model.task_end[from]), x1 = scale.x(model.task_start[to]), y0 = middle(from), y1 = middle(to);
    const bend = Math.max(14, Math.min(60, (x1 - x0) / 2));
    pen.beginPath(); pen.moveTo(x0, y0); pen.bezierCurveTo(x0 + bend, y0, x1 - bend, y1, x1 - 5, y1); pen.stroke();
    pen.beginPath(); pen.moveTo(x1, y1); pen.lineTo(x1 - 7, y1 - 4); pen.lineTo(x1 - 7, y1 + 4); pen.fill();
  }
  pen.globalAlpha = 1;
}
