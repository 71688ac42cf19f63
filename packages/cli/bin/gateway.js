#!/usr/bin/env node
import module from 'node:module';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

// Enabled before any gateway module is imported: Node 22 and later cache compiled code.
module.enableCompileCache?.();
const { run } = await import('@gateway/cli');

process.exitCode = await run({
  argv: process.argv.slice(2),
  root: dirname(dirname(fileURLToPath(import.meta.url))),
});

// Resources that a library leaves open must not keep a finished process alive; unread output must.
setInterval(() => {
  if (process.stdout.writableLength === 0 && process.stderr.writableLength === 0) process.exit();
}, 1000).unref();
