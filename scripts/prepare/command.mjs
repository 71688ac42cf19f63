// @ts-check
import { spawn } from 'node:child_process';
import { Problem } from './problem.mjs';

/**
 * Runs a program silently until it exits.
 * @param {string} program
 * @param {string[]} args
 * @param {{ cwd: string, env?: NodeJS.ProcessEnv }} options
 * @returns {Promise<{ ok: boolean, output: string }>} both output streams, interleaved
 */
export function command(program, args, { cwd, env }) {
  return new Promise((resolve) => {
    const child = spawn(program, args, {
      cwd,
      env: env ?? process.env,
      stdio: ['ignore', 'pipe', 'pipe'],
    });
    let output = '';
    child.stdout.setEncoding('utf8').on('data', (text) => (output += text));
    child.stderr.setEncoding('utf8').on('data', (text) => (output += text));
    child.on('error', (error) => resolve({ ok: false, output: `${program}: ${error.message}` }));
    child.on('close', (code) => resolve({ ok: code === 0, output }));
  });
}

/**
 * Runs a program that must succeed: throws a `Problem` with its output otherwise.
 * @param {string} program
 * @param {string[]} args
 * @param {{ cwd: string, env?: NodeJS.ProcessEnv }} options
 */
export async function succeed(program, args, options) {
  const { ok, output } = await command(program, args, options);
  if (!ok) throw new Problem(`${program} ${args[0]} failed. Is ${program} installed?\n${output}`);
}
