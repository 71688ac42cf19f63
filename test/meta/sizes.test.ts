import fs from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { files, root, workspaces } from './house.js';

const sizes = suite('meta/sizes');

/**
 * Budgets in kB (1,000 bytes) of `src`, `bin` and `templates`. A change that raises one says in its
 * commit why.
 */
const BUDGETS: Readonly<Record<string, number>> = {
  'packages/agent': 431,
  'packages/cli': 297,
  'packages/client': 26,
  // The token buckets of all packages are here.
  // It guards push sources, as it guards the other plugins.
  'packages/core': 479,
  'packages/dashboard': 573,
  'packages/docs': 1,
  // Has all that agents, servers and commands share of their stores: samples, pools, health, usage.
  'packages/ingest': 202,
  // Declares push sources.
  'packages/plugin': 79,
  'packages/sandbox': 87,
  // Findings and explanations, which have no SQL, have come from the store.
  'packages/server': 587,
  // Limits that count in KV, or in memory while it is away, have come from agent and server.
  'packages/store': 629,
  'plugins/codec-avro': 17,
  'plugins/codec-cloudevents': 1,
  'plugins/codec-json-schema': 1,
  'plugins/codec-protobuf': 25,
  'plugins/metrics-pullmetrics': 10,
  // Providers, signatures and handshakes have come from the server.
  'plugins/source-http': 35,
  'plugins/source-kafka': 126,
  'plugins/source-sqs': 30,
  'plugins/tracer-apm': 6,
  'plugins/tracer-errtrack': 9,
  'plugins/tracer-otel': 12,
};

/** Packages that an installation has only if it names them. */
const EXTRAS: Readonly<Record<string, number>> = {
  'extras/archive': 30,
  'extras/convoy': 17,
  'extras/dev': 67,
  'extras/plugin-conformance': 92,
};

/** By how many kB a package is below its budget before the test asks to lower it. */
const SLACK = 5;

const present = files();

function sizeOf(folder: string): number {
  const parts = ['src', 'bin', 'templates'].map((part) => `${folder}/${part}/`);
  return present
    .filter((name) => parts.some((part) => name.startsWith(part)))
    .reduce((sum, name) => sum + fs.statSync(path.join(root, name)).size, 0);
}

sizes('each package has a budget', () => {
  const folders = workspaces().map(({ folder }) => folder);
  assert.equal(Object.keys({ ...BUDGETS, ...EXTRAS }).sort(), folders.sort());
});

sizes('no package is larger than its budget', () => {
  const measured = Object.entries({ ...BUDGETS, ...EXTRAS }).map(([folder, budget]) => {
    const kilobytes = Math.ceil(sizeOf(folder) / 1000);
    return { folder, budget, kilobytes };
  });
  for (const { folder, budget, kilobytes } of measured)
    if (kilobytes <= budget - SLACK)
      console.log(`  Lower the budget of ${folder} from ${budget} to ${kilobytes} kB.`);
  const above = measured.filter(({ budget, kilobytes }) => kilobytes > budget);
  assert.equal(
    above.map(
      ({ folder, budget, kilobytes }) =>
        `${folder} has ${kilobytes} kB, its budget is ${budget}. Make it smaller, or raise the budget in test/meta/sizes.test.ts and say why.`,
    ),
    [],
  );
});

sizes.run();
