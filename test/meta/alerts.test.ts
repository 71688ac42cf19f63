import fs from 'node:fs';
import path from 'node:path';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { promtool } from '../support/prometheus.js';
import { discard, tempFolder } from '../support/start/keep.js';
import { read, root } from './house.js';
import { mistakesIn } from './promql.js';

const alerts = suite('meta/alerts');
const folder = path.join(root, 'deploy/prometheus');
const rules = read('deploy/prometheus/alerts.yml');

interface Alert {
  readonly name: string;
  readonly text: string;
  readonly expression: string;
}

const all: Alert[] = rules
  .split(/^ {6}- (?=alert: |record: )/m)
  .filter((text) => text.startsWith('alert: '))
  .map((text) => ({
    name: /^alert: (\w+)$/m.exec(text)?.[1] ?? '',
    text,
    expression: /^ {8}expr: (?:\|\n)?([^]*?)^ {8}\w/m.exec(text)?.[1]?.trim() ?? '',
  }));

alerts('promtool accepts the example configuration, and the rules with it', async () => {
  const { code, output } = await promtool(['check', 'config', '--lint-fatal', 'prometheus.yml'], {
    cwd: folder,
  });
  assert.is(code, 0, output);
  assert.match(output, /prometheus\.yml is valid/);
  assert.match(output, /alerts\.yml\s+SUCCESS: \d+ rules found/);
});

alerts('promtool accepts every scrape configuration that the guide shows', async () => {
  const blocks = [
    ...read('docs/guides/metrics.md').matchAll(/^```yaml\n(scrape_configs:[^]*?)^```$/gm),
  ].map(([, text = '']) => text);
  assert.is(blocks.length, 2);
  const shown = tempFolder('scrape');
  for (const block of blocks) {
    // Debian's Prometheus is built without Kubernetes.
    const known = block.replace(
      /kubernetes_sd_configs:\n +- role: pod\n/,
      'file_sd_configs: [{ files: [pods.json] }]\n',
    );
    fs.writeFileSync(path.join(shown, 'prometheus.yml'), known);
    // Its token is in a file that does not exist here.
    const { code, output } = await promtool(
      ['check', 'config', '--syntax-only', 'prometheus.yml'],
      { cwd: shown },
    );
    assert.is(code, 0, output);
  }
  discard(shown);
});

alerts('each alert fires on what it is for and is silent on what is healthy', async () => {
  const { code, output } = await promtool(['test', 'rules', 'alerts.test.yml'], { cwd: folder });
  assert.is(code, 0, output);
});

alerts('each alert has a test that it fires, and one that it is silent', () => {
  const tests = read('deploy/prometheus/alerts.test.yml');
  const without = (expected: string) =>
    all
      .map(({ name }) => name)
      .filter((name) => !tests.includes(`alertname: ${name}\n        exp_alerts:${expected}`));
  assert.ok(all.length > 20, `${all.length} alerts`);
  assert.equal(without('\n          - exp_labels:'), [], 'without a test that it fires');
  assert.equal(without(' []\n'), [], 'without a test that it is silent');
});

alerts('each alert asks for series and labels that the gateway exports', () => {
  assert.equal(
    all.flatMap(({ name, expression }) =>
      mistakesIn(expression).map((mistake) => `${name}: ${mistake}`),
    ),
    [],
  );
});

alerts(
  'each alert has a severity, a summary, and a description that names what its rows are told apart by',
  () => {
    const incomplete = all.flatMap(({ name, text, expression }) => {
      const description = /^ {10}description: (?:>-\n)?([^]*?)^ {10}runbook/m.exec(text)?.[1] ?? '';
      const labels = (/\bby \(([^)]*)\)/.exec(expression)?.[1] ?? '')
        .split(', ')
        .filter((label) => label !== '' && label !== 'le');
      return [
        ...(/^ {10}severity: (critical|warning|info)$/m.test(text)
          ? []
          : [`${name} has no severity`]),
        ...(/^ {10}summary: \S.*\.$/m.test(text) ? [] : [`${name} has no summary`]),
        ...(description.trim() ? [] : [`${name} has no description`]),
        ...labels
          .filter((label) => !description.includes(`$labels.${label} `))
          .map((label) => `${name} does not tell the ${label}`),
      ];
    });
    assert.equal(incomplete, []);
  },
);

alerts(
  'each alert leads to a section of the guide that says what it means, what to look at and what to do',
  () => {
    const guide = read('docs/guides/metrics.md');
    const sections = new Map(
      guide
        .split(/^### /m)
        .slice(1)
        .map((section) => [section.split('\n', 1)[0] ?? '', section.split(/^## /m)[0] ?? '']),
    );
    const wrong = all.flatMap(({ name, text }) => {
      const section = sections.get(name) ?? '';
      return [
        ...(text.includes(`runbook: docs/guides/metrics.md#${name.toLowerCase()}\n`)
          ? []
          : [`${name} leads elsewhere`]),
        ...['Means', 'Look at', 'Do']
          .filter((part) => !section.includes(`**${part}:**`))
          .map((part) => `${name}: no "${part}"`),
      ];
    });
    const forgotten = [...sections.keys()].filter(
      (title) => /^Gateway[A-Z]/.test(title) && !all.some(({ name }) => name === title),
    );
    assert.equal([wrong, forgotten], [[], []]);
  },
);

alerts.run();
