#!/usr/bin/env node
import module from 'node:module';
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

// Node 22 and later keep what they have compiled, which is why nothing of ours is imported before.
module.enableCompileCache?.();
const { run } = await import('@gateway/cli');

process.exitCode = await run({ argv: process.argv.slice(2), root: dirname(dirname(fileURLToPath(import.meta.url))) });

// What a library left open must not keep a finished process alive; what a slow reader has not taken yet must.
setInterval(() => {
  if (process.stdout.writableLength === 0 && process.stderr.writableLength === 0) process.exit();
}, 1000).unref();
