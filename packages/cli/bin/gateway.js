#!/usr/bin/env node
// This file has no syntax that old versions of Node cannot parse, so that they get a sentence.
import module from 'module';
import { dirname } from 'path';
import { fileURLToPath } from 'url';

const [major, minor] = process.versions.node.split('.').map(Number);

async function start() {
  // Enabled before any gateway module is imported: Node 22 and later cache compiled code.
  if (module.enableCompileCache) module.enableCompileCache();
  const { run } = await import('@gateway/cli');
  process.exitCode = await run({
    argv: process.argv.slice(2),
    root: dirname(dirname(fileURLToPath(import.meta.url))),
  });

  // Resources that a library leaves open must not keep a finished process alive; unread output must.
  setInterval(() => {
    if (process.stdout.writableLength === 0 && process.stderr.writableLength === 0) process.exit();
  }, 1000).unref();
}

if (major > 20 || (major === 20 && minor >= 19)) void start();
else {
  console.error(
    `error: gateway needs Node 20.19 or newer, and this is Node ${process.versions.node} (${process.execPath})\n` +
      'fix:   install a newer one from https://nodejs.org or with `nvm install 24`, then run the same command again',
  );
  process.exitCode = 1;
}
