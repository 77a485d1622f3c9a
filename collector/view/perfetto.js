// SPDX-License-Identifier: Apache-2.0
// Hands the trace to Perfetto in a window of its own: sends PING until that window answers PONG,
// then the trace. Messages name Perfetto's origin; those of other origins are ignored.
'use strict';
const PERFETTO = 'https://ui.perfetto.dev';
const PING_MS = 200;
const WAIT_MS = 30000;
const button = document.getElementById('open');

function say(text) {
  document.getElementById('state').textContent = text;
}

function offer(text) {
  say(text);
  button.hidden = false;
}

function hand(trace) {
  const theirs = window.open(PERFETTO);
  if (!theirs) {
    offer('The browser blocked the new window.');
    return;
  }
  button.hidden = true;
  say('Loading Perfetto.');
  // Uses the clock, since browsers call the timers of a hidden page only once a second.
  const begin = Date.now();
  const timer = setInterval(() => {
    if (theirs.closed || Date.now() - begin > WAIT_MS) {
      stop();
      offer('Perfetto did not answer. If ui.perfetto.dev cannot be reached from here, download ' +
            'the trace and open it in another viewer.');
      return;
    }
    theirs.postMessage('PING', PERFETTO);
  }, PING_MS);
  function hear(event) {
    if (event.source !== theirs || event.origin !== PERFETTO || event.data !== 'PONG') {
      return;
    }
    stop();
    const title = document.title;
    const fileName = 'gpuprof-trace.json';
    theirs.postMessage({perfetto: {buffer: trace, title, fileName}}, PERFETTO);
    offer('Perfetto has the trace.');
  }
  function stop() {
    clearInterval(timer);
    window.removeEventListener('message', hear);
  }
  window.addEventListener('message', hear);
}

async function start() {
  const answer = await fetch('trace.json');
  if (!answer.ok) {
    throw new Error(`status ${answer.status}`);
  }
  const trace = await answer.arrayBuffer();
  button.addEventListener('click', () => hand(trace));
  hand(trace);
}

start().catch((error) => say('The trace cannot be read (' + error.message +
                             '). Is gpuprof view still running?'));
