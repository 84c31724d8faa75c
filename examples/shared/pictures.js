// The pictures of the examples, drawn from a name: a face, a cat, a sign, or a landscape for a post. One name always
// gives one picture, so no picture has to be stored or sent.

const SKIN = ["#f7d7c0", "#f1c6a4", "#e8b48c", "#d99f73"];
const HAIR = ["#2b2320", "#3c2a23", "#5a3a29", "#1d2433", "#6b4a35"];
const SHIRT = ["#e2574c", "#3f88c5", "#44a076", "#f2a541", "#7b5ea7", "#35524a", "#d1495b"];
const GROUND = ["#ffe3d3", "#d8ecff", "#dcf3e4", "#fff0cc", "#e9e0fa", "#ffdfe6", "#d9f2f0"];

/** What lies behind a head, and what lies on it, in the colour of the hair. */
const HAIRCUTS = [
  { front: '<path d="M27 44c-2-22 12-30 24-29 14 0 26 9 22 29-4-10-9-14-14-16-9 6-22 6-32 16z"/>' },
  { back: '<path d="M22 78c-4-34 0-62 28-62s32 28 28 62z"/>', front: '<path d="M28 46c0-20 10-28 22-28s23 8 22 28c-8-4-12-10-15-16-6 8-16 14-29 16z"/>' },
  { back: '<circle cx="50" cy="14" r="9"/>', front: '<path d="M27 42c0-18 11-25 23-25s23 7 23 25c-12-10-34-10-46 0z"/>' },
  { front: '<path d="M26 40c0-8 3-14 8-18l4 4 5-8 6 6 6-7 5 7 6-3c5 5 8 11 8 19-6-7-12-10-24-10s-18 3-24 10z"/>' },
  { back: '<path d="M24 62c-5-28 4-46 26-46s31 18 26 46c-8 4-44 4-52 0z"/>', front: '<path d="M28 42c2-17 10-24 22-24s20 7 22 24c-12-6-32-6-44 0z"/>' },
];

/** Takes things from lists as a name says: always the same for the same name (FNV-1a, then mulberry32). */
function picker(name) {
  let state = 0x811c9dc5;
  for (const byte of new TextEncoder().encode(name)) state = Math.imul(state ^ byte, 0x01000193) >>> 0;
  return (list) => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return list[((mixed ^ (mixed >>> 14)) >>> 0) % list.length];
  };
}

const svg = (box, inside) => `<svg xmlns="http://www.w3.org/2000/svg" viewBox="${box}">${inside}</svg>`;

/** A portrait: shoulders, a head, hair and a smile. */
function face(user) {
  const pick = picker(user);
  const [ground, shirt, skin, hair, { back = "", front }] = [pick(GROUND), pick(SHIRT), pick(SKIN), pick(HAIR), pick(HAIRCUTS)];
  return svg("0 0 100 100", `
    <rect width="100" height="100" fill="${ground}"/>
    <g fill="${hair}">${back}</g>
    <path d="M14 104c2-24 18-30 36-30s34 6 36 30z" fill="${shirt}"/>
    <path d="M42 64h16v10c0 9-16 9-16 0z" fill="${skin}"/>
    <ellipse cx="50" cy="47" rx="22" ry="25" fill="${skin}"/>
    <g fill="#e88d7d" opacity=".35"><circle cx="37" cy="54" r="5"/><circle cx="63" cy="54" r="5"/></g>
    <g fill="#2b2320"><circle cx="41" cy="47" r="2.6"/><circle cx="59" cy="47" r="2.6"/></g>
    <path d="M43 57c4 5 10 5 14 0" fill="none" stroke="#a5513f" stroke-width="2.4" stroke-linecap="round"/>
    <g fill="${hair}">${front}</g>`);
}

/** A cat: ears, whiskers and a nose. */
function cat(name) {
  const pick = picker(name);
  const [ground, fur] = [pick(GROUND), pick(["#e9974a", "#8d8d93", "#3d3a3f", "#d9b38c"])];
  return svg("0 0 100 100", `
    <rect width="100" height="100" fill="${ground}"/>
    <path d="M24 48V18l18 12h16l18-12v30c8 22-8 38-26 38S16 70 24 48z" fill="${fur}"/>
    <ellipse cx="50" cy="68" rx="15" ry="11" fill="#fff" opacity=".75"/>
    <g fill="#fff"><circle cx="38" cy="52" r="6"/><circle cx="62" cy="52" r="6"/></g>
    <g fill="#2b2320"><circle cx="38" cy="52" r="3.4"/><circle cx="62" cy="52" r="3.4"/><path d="M46 62h8l-4 5z"/></g>
    <path d="M50 67c-2 5-7 5-9 2m9-2c2 5 7 5 9 2M30 64l-16-3m16 8-15 3m55-8 16-3m-16 8 15 3" fill="none" stroke="#2b2320" stroke-width="1.8" stroke-linecap="round"/>`);
}

/** What an office has on its sign. */
const SIGNS = {
  paper: '<path d="M24 26h44v50H30c-4 0-6-3-6-7z" fill="#fff"/><path d="M68 40h8v28c0 5-2 8-6 8" fill="#dfe6ee"/><path d="M31 36h30v12H31zm0 18h30v4H31zm0 9h20v4H31z" fill="#2f5d8c"/>',
  horn: '<path d="M26 44h12l28-16v44L38 58H26z" fill="#fff"/><path d="M36 60l5 16h9l-5-15z" fill="#fff"/><path d="M73 40c6 6 6 14 0 20" fill="none" stroke="#fff" stroke-width="5" stroke-linecap="round"/>',
};

/** The sign of an office, such as a newspaper. */
const sign = (name) => svg("0 0 100 100", `<rect width="100" height="100" fill="${name === "horn" ? "#e6162d" : "#2f5d8c"}"/>${SIGNS[name] ?? ""}`);

/** The colours of a landscape: sky above, sky below, sun, far hills, near hills, water. */
const SCENES = [
  ["#5b8fd6", "#cfe6ff", "#fff6d8", "#7fa6b8", "#4c7d6d", "#9cc9e8"],
  ["#f28f6b", "#ffd9a8", "#fff0c2", "#b56a78", "#6d4a63", "#f0b08c"],
  ["#26375e", "#5d6fa3", "#f4efd4", "#31446b", "#1f2d4a", "#41578c"],
  ["#86c5b4", "#eaf6dc", "#fffbe0", "#8dbd8f", "#4f8a5b", "#bfe3da"],
  ["#c9a7d8", "#fbe3ec", "#fffdf0", "#a98fbf", "#75629b", "#dcc6ea"],
];

/** A landscape at a lake: sun, hills, water and its light. */
function scene(name) {
  const pick = picker(name);
  const [top, low, sun, far, near, water] = pick(SCENES);
  const [x, y] = [pick([60, 95, 140, 205, 240]), pick([48, 66, 84, 100])];
  const [left, right, hill, lean] = [pick([60, 90, 118]), pick([66, 96, 122]), pick([112, 128, 140]), pick([-24, 0, 40])];
  const ripple = (n) => `<path d="M${x - 26 + n * 5} ${162 + n * 13}h${52 - n * 9}" stroke="${sun}" stroke-width="3" stroke-linecap="round" opacity=".7"/>`;
  return svg("0 0 300 225", `
    <linearGradient id="g" x2="0" y2="1"><stop stop-color="${top}"/><stop offset="1" stop-color="${low}"/></linearGradient>
    <rect width="300" height="225" fill="url(#g)"/>
    <circle cx="${x}" cy="${y}" r="22" fill="${sun}"/>
    <path d="M-10 150C30 ${left} 70 ${left} ${128 + lean} 134S240 ${right} 310 138V160H-10z" fill="${far}"/>
    <path d="M-10 156C${50 + lean} ${hill} ${110 + lean} ${hill} 165 150S260 152 310 ${hill}V160H-10z" fill="${near}"/>
    <rect y="150" width="300" height="75" fill="${water}"/>${[0, 1, 2, 3].map(ripple).join("")}`);
}

const ARTISTS = { faces: face, cats: cat, signs: sign, scenes: scene };

/** The pictures that were drawn before, by path. */
const drawn = new Map();

/** The URL of the picture of a path such as `/faces/ming.svg`, which holds all of it; null if the path names none. */
export function picture(path) {
  const [, kind, name] = /^\/([a-z]+)\/([\w-]+)\.svg$/.exec(path) ?? [];
  if (!Object.hasOwn(ARTISTS, kind ?? "")) return null;
  if (!drawn.has(path)) drawn.set(path, `data:image/svg+xml,${encodeURIComponent(ARTISTS[kind](name))}`);
  return drawn.get(path);
}
