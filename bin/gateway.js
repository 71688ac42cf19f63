#!/usr/bin/env node
import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { run } from '@gateway/cli';

process.exitCode = await run({ argv: process.argv.slice(2), root: dirname(dirname(fileURLToPath(import.meta.url))) });
// What is left open by a library must not keep a finished process alive.
setTimeout(() => process.exit(), 1000).unref();
