// SPDX-License-Identifier: Apache-2.0

// Worker threads, libuv's pool, collections, a stack that overflows, a handler, children.
const { Worker, isMainThread, parentPort } = require('worker_threads');
const { execFileSync, spawn } = require('child_process');
const crypto = require('crypto');
const zlib = require('zlib');

function spin(n) {
  let x = 1;
  for (let i = 0; i < n; i++) x = (x * 1103515245 + 12345) | 0;
  return x;
}

function main() {
  const done = [];
  process.on('SIGUSR2', () => console.log('usr2'));
  for (let i = 0; i < 4; i++) {
    done.push(new Promise((told) => new Worker(__filename).on('message', told)));
    done.push(new Promise((told) => crypto.pbkdf2('a', 'b', 20000, 8, 'sha256',
      (error, key) => told(key.toString('hex')))));
    done.push(new Promise((told) => zlib.deflate(Buffer.alloc(3e6, i),
      (error, bytes) => told(bytes.length))));
  }
  done.push(new Promise((told) => spawn('sh', ['-c', 'exit 3']).on('close', told)));
  let junk = [], depth = 0;
  for (let i = 0; i < 300; i++) junk = [...junk.slice(-50), new Array(10000).fill(i)];
  (function fall() { depth++; try { fall(); } catch { /* it is full */ } })();
  console.log(depth > 1000, execFileSync('sh', ['-c', 'echo child']).toString().trim());
  process.kill(process.pid, 'SIGUSR2');
  Promise.all(done).then((all) => { console.log(all.join(' ')); process.exit(5); });
}

if (isMainThread) main(); else parentPort.postMessage(spin(2e7));
