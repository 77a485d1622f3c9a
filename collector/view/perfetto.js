// SPDX-License-Identifier: Apache-2.0
// Hands the trace to Perfetto in a window of its own, at once if the link ends in #perfetto: sends
// PING until that window answers PONG, then the trace. Ignores messages of other origins.
'use strict';
const PERFETTO = 'https://ui.perfetto.dev';
const PING_MS = 200;
const WAIT_MS = 30000;
const byId = (id) => document.getElementById(id);
const say = (text) => { byId('state').textContent = text; };

function hand(theirs, buffer) {
  const title = document.querySelector('h1').textContent;
  // Uses the clock, since browsers call the timers of a hidden page only once a second.
  const begin = Date.now();
  const timer = setInterval(() => {
    if (theirs.closed || Date.now() - begin > WAIT_MS)
      stop('Perfetto did not answer. If ui.perfetto.dev cannot be reached from here, download ' +
           'the trace and open it in another viewer.');
    else
      theirs.postMessage('PING', PERFETTO);
  }, PING_MS);
  function hear(event) {
    if (event.source !== theirs || event.origin !== PERFETTO || event.data !== 'PONG') return;
    theirs.postMessage({perfetto: {buffer, title, fileName: 'gpuprof-trace.json'}}, PERFETTO);
    stop('Perfetto has the trace.');
  }
  function stop(text) {
    clearInterval(timer);
    removeEventListener('message', hear);
    say(text);
  }
  addEventListener('message', hear);
}

async function start() {
  // At once: browsers block a window that is opened long after the click.
  const theirs = window.open(PERFETTO);
  say(theirs ? 'Loading the trace and Perfetto.' : 'The browser blocked the new window.');
  if (!theirs) return;
  try {
    const answer = await fetch('trace.json');
    if (!answer.ok) throw new Error(`status ${answer.status}`);
    hand(theirs, await answer.arrayBuffer());
  } catch (error) {
    say(`The trace cannot be read (${error.message}). Is gpuprof view still running?`);
  }
}

byId('open').addEventListener('click', start);
if (location.hash === '#perfetto') start();
