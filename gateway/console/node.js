// The node: its figures, and the sessions of the users whose phones are here.

import { html } from "./vendor/lit-html/lit-html.js";

export class Node {
  stats = null;
  /** {user, device, node, position, since} of each session. */
  sessions = [];

  constructor(backend) {
    this.backend = backend;
  }

  async read(users) {
    const pools = users.map(async (user) => {
      const { sessions } = await this.backend.call("GET", `/v1/users/${user}/sessions`);
      return sessions.map((session) => ({ user, ...session }));
    });
    [this.stats, ...this.sessions] = await Promise.all([this.backend.call("GET", "/v1/stats"), ...pools]);
    this.sessions = this.sessions.flat();
  }

  /** Whether nothing was ever published here. */
  get isEmpty() {
    return this.stats?.archive.items === 0;
  }
}

export const nodeView = (page, node) => html`
  <h2>${node.stats?.node ?? "this node"} <small>up ${duration(node.stats?.uptime_ms ?? 0)}</small></h2>
  <dl class="figures">${figures(node.stats).map(([name, value]) => html`<div><dt>${name}</dt><dd>${value.toLocaleString("en")}</dd></div>`)}</dl>
  <h3>Session pool</h3>
  <table>
    <thead><tr><th>reader</th><th>device</th><th>acknowledged</th><th><span class="hidden">end</span></th></tr></thead>
    <tbody>${node.sessions.map((session) => sessionView(page, session))}</tbody>
  </table>`;

const sessionView = (page, { user, device, position }) => html`
  <tr>
    <td>${user}</td>
    <td>${device}</td>
    <td>${position === null ? "–" : `${position.epoch}:${position.offset}`}</td>
    <td><button @click=${() => page.change("DELETE", `/v1/users/${user}/sessions/${device}`)} aria-label="End the session of ${user}'s ${device}">End</button></td>
  </tr>`;

function figures(stats) {
  if (stats === null) return [];
  const { sessions, archive, inboxes, jobs } = stats;
  return [
    ["sessions", sessions.sessions],
    ["connections", sessions.connections],
    ["people", archive.users],
    ["items", archive.items],
    ["follows", archive.edges],
    ["inboxes", inboxes.inboxes],
    ["entries in logs", inboxes.entries],
    ["jobs waiting", jobs.pending],
  ];
}

/** A time in milliseconds, in words of one unit. */
function duration(ms) {
  const units = [[86_400_000, "d"], [3_600_000, "h"], [60_000, "min"], [1000, "s"]];
  const [size, unit] = units.find(([size]) => ms >= size) ?? units.at(-1);
  return `${Math.floor(ms / size)} ${unit}`;
}
