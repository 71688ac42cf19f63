import { pathToFileURL } from 'node:url';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { outdatedPatches } from '../reliability/proof/broken-builds.js';
import { files, root } from './house.js';

const meta = suite('meta/mutants');

interface Mutant {
  readonly name: string;
  readonly file: string;
  readonly from: string;
  readonly to: string;
  readonly tests: readonly string[];
}

const script = pathToFileURL(path.join(root, 'scripts/mutants.mjs')).href;
const { mutants, mutated } = (await import(script)) as {
  mutants(): Mutant[];
  mutated(mutant: Mutant): string;
};

meta('there are at least sixty, and all packages with logic have some', () => {
  const all = mutants();
  assert.ok(all.length >= 60, `${all.length}`);
  const packages = new Set(all.map(({ file }) => file.split('/')[1]));
  for (const name of [
    'agent',
    'cli',
    'core',
    'ingest',
    'sandbox',
    'server',
    'source-kafka',
    'source-sqs',
    'store',
  ])
    assert.ok(packages.has(name), `${name} has no mutant`);
});

meta('each has a name of its own and changes a line that is there once', () => {
  const names = mutants().map((mutant) => {
    assert.is.not(mutated(mutant), '', mutant.name);
    assert.is.not(mutant.from, mutant.to, mutant.name);
    return mutant.name;
  });
  assert.is(new Set(names).size, names.length);
});

meta('the other builds of the proof change lines that are there once', () =>
  assert.equal(outdatedPatches(), []),
);

meta('each names tests that exist', () => {
  const tests = files().filter((name) => name.endsWith('.test.ts'));
  const missing = mutants().filter(
    ({ tests: filters }) => !filters.every((part) => tests.some((name) => name.includes(part))),
  );
  assert.equal(
    missing.map(({ name, tests: filters }) => `${name}: ${filters.join(', ')}`),
    [],
  );
});

meta.run();
