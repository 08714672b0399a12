"use strict";
// Text for people, and elements. Every text goes in as text, never as markup.

const DIRECTIONS = ["read", "write", "other"];

// What was done since the page was opened: cells of cubes that were visited, of heat maps that were shaded, of tables that
// were written, and pictures that were drawn.
const work = { cells: 0, shaded: 0, written: 0, drawn: 0 };

// Characters that change what is seen without being seen are shown by their numbers.
function visible(text) {
  return String(text).replace(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\u034f\u115f\u1160\u3164\uffa0\ufe00-\ufe0f]/gu,
    (c) => "\\u{" + c.codePointAt(0).toString(16) + "}");
}

function digits(value) {
  return value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2);
}

function scaled(value, step, units) {
  let at = 0;
  while (Math.abs(value) >= step && at < units.length - 1) { value /= step; at += 1; }
  return (at === 0 ? String(Math.round(value)) : digits(value)) + " " + units[at];
}

const numbers = new Intl.NumberFormat("en", { maximumFractionDigits: 0 });

const format = {
  bytes: (n) => scaled(n, 1024, ["B", "KiB", "MiB", "GiB", "TiB", "PiB"]),
  ns: (n) => (n < 60e9 ? scaled(n, 1000, ["ns", "us", "ms", "s"]) : digits(n / 1e9) + " s"),
  calls: (n) => numbers.format(n),
  errors: (n) => numbers.format(n),
  percent: (part) => (part * 100).toFixed(1) + "%",
};

// An element with attributes and children: strings become text; "on..." are listeners.
function el(tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== null && value !== undefined) element.setAttribute(name, value);
  }
  element.append(...children.flat().map((child) => (child instanceof Node ? child : visible(child))));
  return element;
}

// Colours of the theme: asking for the style of an element is slow.
const colors = new Map();

function color(name) {
  if (!colors.has(name)) colors.set(name, getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim());
  return colors.get(name);
}

// The context of a canvas of this size in pixels of the page, empty.
function drawing(canvas, width, height) {
  const ratio = window.devicePixelRatio || 1;
  const [wide, high] = [Math.round(width * ratio), Math.round(height * ratio)];
  if (canvas.width !== wide || canvas.height !== high) {
    Object.assign(canvas, { width: wide, height: high });
    Object.assign(canvas.style, { width: width + "px", height: height + "px" });
  }
  const context = canvas.getContext("2d");
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, width, height);
  work.drawn += 1;
  return context;
}
