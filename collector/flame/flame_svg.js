// SPDX-License-Identifier: Apache-2.0
'use strict';
(function () {
  const CHARACTER = 7, MARGIN = 10;
  const root = document.documentElement;
  const view = root.viewBox.baseVal;
  let room = view.width - 2 * MARGIN, zoomed;
  const byId = (id) => document.getElementById(id);
  const frames = Array.from(document.querySelectorAll('g.f'), (g) => ({
    g, rect: g.querySelector('rect'), text: g.querySelector('text'),
    label: g.querySelector('title').textContent.replace(/: [^:]*$/, ''),
    x: +g.dataset.x, w: +g.dataset.w, depth: +g.dataset.d }));
  const ordered = frames.slice().sort((a, b) => a.x - b.x || a.depth - b.depth);
  const SLACK = 1e-6;
  function fit(label, width) {
    const letters = Array.from(label), fits = Math.floor((width - 6) / CHARACTER);
    if (letters.length <= fits) return label;
    return fits > 2 ? letters.slice(0, fits - 2).join('') + '..' : '';
  }
  function zoom(to) {
    zoomed = to;
    for (const f of frames) {
      const around = f.depth < to.depth && f.x <= to.x + SLACK &&
                     f.x + f.w >= to.x + to.w - SLACK;
      const within = f.depth >= to.depth && f.x >= to.x - SLACK &&
                     f.x + f.w <= to.x + to.w + SLACK;
      f.g.classList.toggle('around', around);
      f.g.classList.toggle('away', !around && !within);
      const x = MARGIN + (around ? 0 : (f.x - to.x) / to.w * room);
      const width = around ? room : f.w / to.w * room;
      f.rect.setAttribute('x', x);
      f.rect.setAttribute('width', width);
      f.text.setAttribute('x', x + 3);
      f.text.textContent = fit(f.label, width);
    }
    byId('reset').classList.toggle('off', to === frames[0]);
  }
  function fill() {
    const width = root.getBoundingClientRect().width;
    if (width <= 4 * MARGIN || width === view.width) return;
    view.width = width;
    room = width - 2 * MARGIN;
    for (const id of ['search', 'reset', 'found'])
      byId(id).setAttribute('x', width - MARGIN);
    zoom(zoomed);
  }
  function search(words) {
    const wanted = words.toLowerCase();
    let end = 0, sum = 0;
    for (const f of ordered) {
      const found = wanted !== '' && f.label.toLowerCase().includes(wanted);
      f.g.classList.toggle('found', found);
      if (found && f.x >= end - SLACK) { sum += f.w; end = f.x + f.w; }
    }
    byId('found').textContent = wanted === '' ? '' :
      '"' + words + '": ' + (100 * sum).toFixed(2) + ' %';
  }
  for (const f of frames) f.g.addEventListener('click', () => zoom(f));
  byId('reset').addEventListener('click', () => zoom(frames[0]));
  byId('search').addEventListener('click', () => {
    const words = window.prompt('frames with this in their names');
    if (words !== null) search(words);
  });
  function follow() {
    const [what, value] = decodeURIComponent(location.hash.slice(1)).split(/=(.*)/);
    if (what === 'search') search(value || '');
    if (what === 'zoom' && frames[+value]) zoom(frames[+value]);
  }
  zoomed = frames[0];
  fill();
  window.addEventListener('resize', fill);
  window.addEventListener('hashchange', follow);
  follow();
}());
