"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (selector) => document.querySelector(selector);
const $$ = (selector) => [...document.querySelectorAll(selector)];
const HEARD_SHARE = 0.9; // of a clip, before it may be judged

// -- what is kept in the browser: a closed tab loses nothing
const keyOf = (rater) => `labkit-listening:${data.test}:${rater}`;
const LAST = `labkit-listening:${data.test}`;
function stored(key) {
  try { return localStorage.getItem(key); } catch { return null; }
}
function store(key, text) {
  try { localStorage.setItem(key, text); } catch { $("#storage").hidden = false; }
}

// -- order and sides, from the seed and the listener's name
function random(text) {
  let state = 2166136261;
  for (const character of text) state = Math.imul(state ^ character.codePointAt(0), 16777619);
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4294967296;
  };
}
function ordered(rater) {
  const next = random(`${data.seed}|${data.test}|${rater}`);
  const trials = data.trials.map((trial) => ({ ...trial, sides: next() < 0.5 ? trial.clips : [...trial.clips].reverse() }));
  for (let i = trials.length - 1; i > 0; i--) {
    const j = Math.floor(next() * (i + 1));
    [trials[i], trials[j]] = [trials[j], trials[i]];
  }
  return trials;
}

let rater = "", trials = [], votes = {}, at = 0, heard = new Set();

// -- playing
let sound = null, sounding = null;
function stop() {
  if (sound) { sound.pause(); sound = null; }
  $$(".playing").forEach((button) => button.classList.remove("playing"));
}
function play(button, clip, whenHeard) {
  const same = sounding === button && sound;
  stop();
  if (same) { sounding = null; return; }
  sounding = button;
  const own = new Audio(data.clips[clip]);
  const bar = button.querySelector("i");
  sound = own;
  const done = () => { button.classList.add("heard"); whenHeard(); };
  own.addEventListener("timeupdate", () => {
    if (sound !== own) return;
    const share = own.duration ? own.currentTime / own.duration : 0;
    bar.style.width = `${100 * share}%`;
    if (share >= HEARD_SHARE) done();
  });
  own.addEventListener("ended", () => {
    bar.style.width = "0";
    if (sound === own) { stop(); sounding = null; }
    done();
  });
  button.classList.add("playing");
  own.play().catch(() => { if (sound === own) { stop(); sounding = null; } });
}
function playSide(side) {
  const button = $(`#trial [data-side="${side}"]`);
  const trial = trials[at];
  play(button, trial.sides[side], () => { if (trials[at] === trial) { heard.add(side); unlock(); } });
}
const sideCount = () => trials[at].sides.length;
const unheard = () => [...Array(sideCount()).keys()].find((side) => !heard.has(side));

// -- one trial
function show() {
  stop();
  sounding = null;
  heard = new Set();
  $("#intro").hidden = true;
  $("#trial").hidden = at >= trials.length;
  $("#end").hidden = at < trials.length;
  if (at >= trials.length) { $("#raw").value = exported(); return; }
  const trial = trials[at], vote = votes[trial.id];
  $("#text").textContent = trial.text;
  $("#text").hidden = !trial.text;
  $("#bar").value = Object.keys(votes).length;
  $("#count").textContent = `${at + 1} of ${trials.length}`;
  $("#back").disabled = at === 0;
  $$("#trial .play").forEach((button) => { button.classList.remove("heard"); button.querySelector("i").style.width = "0"; });
  $$("[data-answer]").forEach((button) => button.classList.toggle("chosen", Boolean(vote) && button.dataset.answer === pressedFor(trial, vote)));
  unlock();
}
// a vote names a clip; the button names a side
const answerOf = (trial, pressed) => data.kind === "mos" ? Number(pressed) : pressed === "same" ? "same" : trial.sides[Number(pressed)];
const pressedFor = (trial, vote) => data.kind === "mos" ? String(vote.answer) : vote.answer === "same" ? "same" : String(trial.sides.indexOf(vote.answer));
function unlock() {
  const open = unheard() === undefined || Boolean(votes[trials[at].id]);
  $$("[data-answer]").forEach((button) => { button.disabled = !open; });
  const keys = data.kind === "mos" ? "1 to 5" : "1, 2 or 3";
  $("#hint").textContent = open ? `Answer by a click, or with the keys ${keys}.` : data.kind === "mos" ? "Listen to the end first." : "Listen to both, to the end, first.";
}
function answer(pressed) {
  const trial = trials[at];
  votes[trial.id] = { answer: answerOf(trial, pressed), at: new Date().toISOString() };
  store(keyOf(rater), JSON.stringify(votes));
  at += 1;
  show();
  if (at < trials.length) playSide(0);
}
function back() {
  if (at > 0) { at -= 1; show(); }
}

// -- leaving with the votes
function exported() {
  const cast = trials.filter((trial) => votes[trial.id]).map((trial) => ({ trial: trial.id, ...votes[trial.id] }));
  return JSON.stringify({ format: data.format, test: data.test, rater, votes: cast }, null, 1);
}
function save() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([exported()], { type: "application/json" }));
  link.download = `votes-${data.test}-${rater.replace(/[^\p{L}\p{N}]+/gu, "-")}.json`;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 1000);
}

// -- hands on the page
function begin(name) {
  rater = name.trim();
  store(LAST, rater);
  trials = ordered(rater);
  try { votes = JSON.parse(stored(keyOf(rater))) || {}; } catch { votes = {}; }
  const open = trials.findIndex((trial) => !votes[trial.id]);
  at = open < 0 ? trials.length : open;
  show();
}
function tellKept() {
  let kept = {};
  try { kept = JSON.parse(stored(keyOf($("#rater").value.trim()))) || {}; } catch { kept = {}; }
  const count = Object.keys(kept).length;
  $("#resume").textContent = count ? `${count} answers are kept in this browser: you go on where you stopped.` : "";
}
$("#intro").addEventListener("submit", (event) => {
  event.preventDefault();
  if ($("#rater").value.trim()) begin($("#rater").value);
});
$("#rater").addEventListener("input", tellKept);
$$("[data-example]").forEach((button) => button.addEventListener("click", () => play(button, data.example[Number(button.dataset.example)], () => {})));
$$("[data-side]").forEach((button) => button.addEventListener("click", () => playSide(Number(button.dataset.side))));
$$("[data-answer]").forEach((button) => button.addEventListener("click", () => answer(button.dataset.answer)));
$$(".save").forEach((button) => button.addEventListener("click", save));
$("#back").addEventListener("click", back);
$("#again").addEventListener("click", back);
document.addEventListener("keydown", (event) => {
  if ($("#trial").hidden || event.ctrlKey || event.metaKey || event.altKey) return;
  const choices = $$("[data-answer]"), number = Number(event.key);
  if (event.key === " ") playSide(sounding && sound ? Number(sounding.dataset.side) : unheard() ?? 0);
  else if (data.kind === "ab" && "ab".includes(event.key.toLowerCase())) playSide(event.key.toLowerCase() === "a" ? 0 : 1);
  else if (number >= 1 && number <= choices.length) { if (!choices[0].disabled) answer(choices[number - 1].dataset.answer); }
  else if (event.key === "Backspace") back();
  else return;
  event.preventDefault();
});
$("#rater").value = stored(LAST) || "";
store(LAST, $("#rater").value); // a browser that keeps nothing says so before the first answer
tellKept();
