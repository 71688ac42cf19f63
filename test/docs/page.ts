import { spawn } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import * as assert from 'uvu/assert';
import { root } from '../meta/house.js';
import { currentBuild } from '../support/gateway.js';
import { tempFolder } from '../support/start/keep.js';

/** A fenced code block. */
export interface Block {
  readonly page: string;
  /** The heading at the second level above it. */
  readonly section: string;
  readonly line: number;
  /** `sh`, `json`; empty if the fence has none. */
  readonly kind: string;
  /** The file that the block shows: `title="gateway.json"` after the kind. */
  readonly title: string | undefined;
  readonly text: string;
}

/** Returns the code blocks of a page, such as `docs/start.md`, in order. */
export function blocksOf(page: string): Block[] {
  const source = fs.readFileSync(path.join(root, page), 'utf8');
  let section = '';
  return [
    ...source.matchAll(/^## (.+)$|^( *)```(\w*)(?: title="([^"]+)")?\n([^]*?)^ *```$/gm),
  ].flatMap(({ 1: heading, 2: indent = '', 3: kind = '', 4: title, 5: text = '', index }) => {
    if (heading !== undefined) {
      section = heading;
      return [];
    }
    const line = source.slice(0, index).split('\n').length;
    const lines = text.split('\n').map((it) => it.slice(it.startsWith(indent) ? indent.length : 0));
    return [{ page, section, line, kind, title, text: lines.join('\n') }];
  });
}

/** A folder with the built `gateway` command and an `npm` that installs nothing, for the PATH. */
export function programs(): string {
  const folder = tempFolder('programs');
  const scripts = { gateway: `exec '${process.execPath}' '${currentBuild}' "$@"`, npm: ':' };
  for (const [name, script] of Object.entries(scripts))
    fs.writeFileSync(path.join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return folder;
}

const END = '-- end of a block --';

/**
 * Runs the `sh` blocks among these in one bash, as a reader does in one terminal, and compares what
 * each prints with the block after it if that is one of `outputs`. Rejects at the first line that
 * fails or prints something else.
 *
 * @param options.replaced what the page tells readers to replace, and by what, also in outputs
 * @param options.before lines to run first
 */
export async function runBlocks(
  blocks: readonly Block[],
  options: {
    cwd: string;
    env: Readonly<Record<string, string>>;
    replaced?: Readonly<Record<string, string>>;
    before?: string;
    outputs?: readonly string[];
  },
): Promise<void> {
  const { cwd, env, replaced = {}, before = '', outputs = ['text'] } = options;
  const steps = blocks.flatMap((block, at) => {
    const next = blocks[at + 1];
    const here = ({ text }: Block) =>
      Object.entries(replaced).reduce((done, [written, by]) => done.replaceAll(written, by), text);
    const shown = next && outputs.includes(next.kind) ? here(next) : undefined;
    return block.kind === 'sh' ? [{ block, commands: here(block), shown }] : [];
  });
  // Background processes end with the shell.
  const script = [
    `set -eo pipefail; trap 'kill $(jobs -p) 2>/dev/null || true; wait' EXIT`,
    before,
    ...steps.map(({ commands }) => `${commands}\necho; echo '${END}'`),
  ].join('\n');
  const child = spawn('bash', ['--norc', '--noprofile', '-c', script], {
    cwd,
    env: { HOME: cwd, ...env, PATH: `${programs()}:${process.env['PATH']}` },
    stdio: ['ignore', 'pipe', 'pipe'],
    timeout: 200_000,
  });
  let [output, errors] = ['', ''];
  child.stdout.on('data', (text: Buffer) => (output += text.toString()));
  child.stderr.on('data', (text: Buffer) => (errors += text.toString()));
  const code = await new Promise((resolve) => child.once('close', resolve));
  const printed = output.split(`\n${END}\n`);
  for (const [at, { block, commands, shown }] of steps.entries()) {
    const told = `${block.page}:${block.line}\n${commands}\nprinted\n${printed[at]}\n${errors}`;
    if (at >= printed.length - 1) assert.unreachable(`bash ended with ${String(code)} at ${told}`);
    if (shown !== undefined)
      assert.ok(
        pattern(shown).test((printed[at] ?? '').trim()),
        `${told}\nThe page shows\n${shown}`,
      );
  }
  assert.is(code, 0, errors);
}

/**
 * Converts documented output to a pattern: `…` stands for varying parts, and the widths of columns
 * vary.
 */
function pattern(shown: string): RegExp {
  const parts = shown.trim().split('…');
  const patterns = parts.map((part) =>
    part.replace(/[.*+?^${}()|[\]\\]/g, '\\$&').replaceAll(/ {2,}/g, ' +'),
  );
  return new RegExp(`^${patterns.join('[^]*')}$`);
}
