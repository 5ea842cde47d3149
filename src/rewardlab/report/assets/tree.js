// -- rollouts: trees --------------------------------------------------------------------------------------------------
const NODE = { width: 196, height: 46, across: 236, down: 56 };

// Paths of one number only number the rollouts of a group: there is no tree.
const isTree = (members) => members.length > 1 && members.every((id) => store.rollouts[id].path) && members.some((id) => store.rollouts[id].path.length > 1);

// Length in tokens of the common prefix of these rollouts.
function shared(members) {
  const [first, ...rest] = members.map((id) => [store.start[id], store.length[id]]);
  let n = Math.min(first[1], store.head, ...rest.map(([, length]) => length));
  for (const [start] of rest) {
    let i = 0;
    while (i < n && store.ids[first[0] + i] === store.ids[start + i]) i++;
    n = i;
  }
  return n;
}

// Group the rollouts into branches by path; a stretch without branching is one node. {members, children, from, to}: its tokens are [from, to).
function treeOf(members, depth = 0, from = 0) {
  const branches = new Map();
  const ended = members.filter((id) => store.rollouts[id].path.length <= depth);
  for (const id of members) {
    const step = store.rollouts[id].path[depth];
    if (step !== undefined) branches.set(step, [...(branches.get(step) || []), id]);
  }
  if (members.length === 1) return { members, children: [], from, to: store.length[members[0]] };
  if (branches.size === 1 && !ended.length) return treeOf(members, depth + 1, from);
  const to = Math.max(from, shared(members));
  const below = [...branches.entries()].sort((a, b) => a[0] - b[0]).map(([, ids]) => treeOf(ids, depth + 1, to));
  return { members, from, to, children: [...ended.map((id) => ({ members: [id], children: [], from: to, to: store.length[id] })), ...below] };
}

const worth = (node) => {
  const paid = node.members.map((id) => store.rollouts[id].reward).filter((x) => x !== null);
  return paid.length ? paid.reduce((a, b) => a + b, 0) / paid.length : null;
};

// Place leaves one below another, and each parent at the middle of its children.
function place(node, depth, state) {
  node.x = depth * NODE.across;
  state.depth = Math.max(state.depth, depth);
  node.children.forEach((child) => place(child, depth + 1, state));
  node.y = node.children.length ? (node.children[0].y + node.children[node.children.length - 1].y) / 2 : NODE.down * state.leaves++;
  return state;
}

function treeView(group, members, open) {
  const root = treeOf(members);
  const size = place(root, 0, { leaves: 0, depth: 0 });
  const [width, height] = [size.depth * NODE.across + NODE.width + 4, size.leaves * NODE.down];
  const svg = document.createElementNS("http://www.w3.org/2000/svg", "svg");
  svg.setAttribute("width", width);
  svg.setAttribute("height", height);
  const canvas = el("div", "canvas", null, svg);
  canvas.style.width = `${width}px`;
  canvas.style.height = `${height}px`;
  const shown = el("div", "segment");
  const values = members.map((id) => store.rollouts[id].reward).filter((x) => x !== null);
  const spread = [Math.min(...values), Math.max(...values)];
  const middle = worth(root);
  const add = (node) => {
    canvas.append(nodeButton(node, root, middle, spread, (button) => {
      canvas.querySelectorAll(".chosen").forEach((n) => n.classList.remove("chosen"));
      button.classList.add("chosen");
      node.children.length ? showSegment(shown, node) : open(store.rollouts[node.members[0]], shown);
    }));
    for (const child of node.children) {
      svg.append(link(node, child));
      add(child);
    }
  };
  add(root);
  showSegment(shown, root);
  const note = `${members.length} rollouts, merged where they share a prefix. The number is the mean reward of the rollouts through a node; blue is above the overall mean (${number(middle)}), orange below. Click a node to read it.`;
  return el("div", "tree", null, el("p", "note", note), el("div", "wide", null, canvas), shown);
}

function link(a, b) {
  const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
  const [x0, y0, x1, y1] = [a.x + NODE.width, a.y + NODE.height / 2, b.x, b.y + NODE.height / 2];
  path.setAttribute("d", `M${x0},${y0} C${(x0 + x1) / 2},${y0} ${(x0 + x1) / 2},${y1} ${x1},${y1}`);
  path.setAttribute("stroke-width", String(1 + Math.min(5, Math.sqrt(b.members.length))));
  return path;
}

function nodeButton(node, root, middle, [low, high], act) {
  const value = worth(node), r = store.rollouts[node.members[0]];
  const end = node.children.length ? node.to : Math.min(node.to, node.from + 60);
  const text = node === root ? "common prefix" : textOf(r, node.from, end).trim().replace(/\s+/g, " ") || "(ends here)";
  const leaf = node.children.length ? `${node.members.length} rollouts` : `rollout ${(r.row ?? 0) + 1}${r.truth === null ? "" : r.truth >= 1 ? " ✓" : " ✗"}`;
  const made = button("", "node", () => act(made), text);
  made.append(el("b", "", value === null ? "no verdict" : number(value)), el("small", "", leaf), el("span", "", shorten(text, 30)));
  const reach = Math.max(high - middle, middle - low) || 1;
  const strength = value === null ? 0 : Math.min(1, Math.abs(value - middle) / reach);
  made.style.background = strength ? `linear-gradient(rgba(var(${value > middle ? "--pos" : "--neg"}), ${(0.5 * strength).toFixed(2)}) 0 0), var(--card)` : "var(--card)";
  Object.assign(made.style, { left: `${node.x}px`, top: `${node.y}px`, width: `${NODE.width}px`, height: `${NODE.height}px` });
  return made;
}

function showSegment(box, node) {
  const r = store.rollouts[node.members[0]];
  box.replaceChildren(el("h3", "", `Shared by ${node.members.length} rollouts: tokens ${node.from} to ${node.to}`), tokensOf(r, node.from, node.to));
  paint(box);
}

