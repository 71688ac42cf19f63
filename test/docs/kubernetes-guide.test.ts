// deadline: 900 s, long
import { execFile, execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { promisify } from 'node:util';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { packChart } from '../../scripts/release/chart.mjs';
import { helmProgram, type Manifest, validated } from '../deploy/helm/charts.js';
import { root } from '../meta/house.js';
import { endpoint } from '../support/endpoint.js';
import { production } from '../support/production.js';
import { tempFolder } from '../support/start/keep.js';
import { installed } from '../support/start/packages.js';
import { blocksOf } from './page.js';

/** docs/guides/kubernetes.md, word by word, as far as its lines go without a cluster. */
const guide = suite('docs/kubernetes-guide');

installed('kubectl', ['kubernetes-client', 'kubectl'], 'for the lines of the guide');
installed('openssl', ['openssl'], 'for a certificate');

const page = fs.readFileSync(path.join(root, 'docs/guides/kubernetes.md'), 'utf8');
const blocks = (kind: string) =>
  blocksOf('docs/guides/kubernetes.md').flatMap((it) => (it.kind === kind ? [it.text] : []));
const inText = [
  ...page.replace(/^```[^]*?^```$/gm, '').matchAll(/`((?:kubectl|helm) [^`]+)`/g),
].map(([, line = '']) => line);

const folder = tempFolder('kubernetes-guide');
const write = (name: string, text: string) => fs.writeFileSync(path.join(folder, name), text);
const read = (name: string) => fs.readFileSync(path.join(folder, name), 'utf8');

/** No server listens on this port. */
const CLUSTER = {
  clusters: [{ name: 'none', cluster: { server: 'http://127.0.0.1:1' } }],
  contexts: [{ name: 'none', context: { cluster: 'none' } }],
  'current-context': 'none',
};
const CERTIFICATE =
  'req -x509 -newkey rsa:2048 -nodes -subj /CN=gateway.example.com -keyout tls.key -out tls.crt';

/** Programs that make or render objects do so; the others must fail for want of a cluster alone. */
const withoutCluster = (program: string) => `
said=$(${program} "$@" 2>&1) && exit
case $said in *127.0.0.1:1*refused*) ;; *) echo "$said" >&2; exit 1;; esac`;
const kubectl = `
echo "$*" >> lines
case " $* " in
  *' create '*) exec "$KUBECTL" "$@" --dry-run=client --output=json > "$(mktemp created.XXXXXX)";;
  *' apply '*) exec cat > undo.yaml;;
esac${withoutCluster('"$KUBECTL"')}`;
const helm = `
case $1 in
  install | upgrade) action=$1; shift; exec "$HELM" template --kube-version=1.37.0 "$@" > $action.yaml;;
  template) exec "$HELM" "$@" --kube-version=1.37.0;;
esac${withoutCluster('"$HELM"')}`;

guide('its lines make what the chart refers to, name what it has, and deliver', async () => {
  const [chart = ''] = await packChart({ root, out: folder, version: '9.8.7' });
  const [values = '', metrics = ''] = blocks('yaml');
  write('values.yaml', values);
  write('metrics.yaml', metrics);
  write('kubeconfig', JSON.stringify(CLUSTER));
  fs.mkdirSync(path.join(folder, 'bin'));
  for (const [name, script] of Object.entries({ kubectl, helm }))
    fs.writeFileSync(path.join(folder, 'bin', name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  execFileSync('openssl', CERTIFICATE.split(' '), { cwd: folder, stdio: 'ignore' });

  const [gateway, inbox] = await Promise.all([production({ agents: 1 }), endpoint()]);
  try {
    const uid = `$(node -p 'JSON.parse(fs.readFileSync("out", "utf8").split(/(?={"status")/).at(-1)).data.uid')`;
    const table = [
      ['gateway-<version>.tgz', chart],
      ['http://127.0.0.1:5005', `http://127.0.0.1:${gateway.serverPort}`],
      ['gw_…', gateway.apiKey],
      ['https://example.com/webhooks', inbox.url],
      ['PROJECT_ID=…', `PROJECT_ID=${uid}`],
      ['ENDPOINT_ID=…', `ENDPOINT_ID=${uid}`],
    ] as const;
    const script = ['set -eo pipefail; exec > out', ...blocks('sh'), ...inText, 'wait'].join('\n');
    const here = table.reduce((text, [from, to]) => text.replaceAll(from, to), script);
    await promisify(execFile)('bash', ['-c', here], {
      cwd: folder,
      env: {
        ...process.env,
        PATH: `${path.join(folder, 'bin')}:${process.env['PATH']}`,
        KUBECTL: execFileSync('which', ['kubectl'], { encoding: 'utf8' }).trim(),
        HELM: await helmProgram('4.3.0'),
        KUBECONFIG: path.join(folder, 'kubeconfig'),
      },
    });
    const [request] = await inbox.received(1);
    assert.equal(JSON.parse(request?.body.toString() ?? ''), { id: 'o-1' });
  } finally {
    await gateway.close();
    await inbox.close();
  }

  const rendered = ['install', 'upgrade', 'undo'].map((name) => [name, read(`${name}.yaml`)]);
  const { objects, problems } = await validated(Object.fromEntries(rendered) as Texts);
  assert.equal(problems, []);
  assert.equal(missingSecrets(objects['install'] ?? []), []);
  const [, job] = objects['undo'] ?? [];
  assert.equal(job?.spec.template.spec.containers[0].args, ['migrate', 'down', '--max=2']);
  const names = Object.values(objects)
    .flat()
    .map(({ kind, metadata }) => `${kind.toLowerCase()}/${metadata.name}`);
  const lines = read('lines').trim().split('\n');
  assert.ok(lines.length > 10, `the page has only ${lines.length} lines of kubectl`);
  for (const line of lines) {
    for (const [named] of line.matchAll(/\b(?:deployment|job|service)\/[\w-]+/g))
      assert.ok(names.includes(named), `${line}: the chart has no ${named}`);
    const [, namespace = 'hooks'] = /(?:--namespace|create namespace) (\S+)/.exec(line) ?? [];
    assert.is(namespace, 'hooks', line);
  }
});

guide('the values for metrics are those of the chart', async () => {
  const { stdout } = await promisify(execFile)(
    await helmProgram('4.3.0'),
    [
      'template',
      'gateway',
      path.join(root, 'deploy/helm/gateway'),
      '--kube-version=1.37.0',
      '--values=values.yaml',
      '--values=metrics.yaml',
    ],
    { cwd: folder, maxBuffer: 1 << 26 },
  );
  const { objects, problems } = await validated({ metrics: stdout });
  assert.equal(problems, []);
  const kinds = new Set(objects['metrics']?.map(({ kind }) => kind));
  assert.ok(kinds.has('ServiceMonitor') && kinds.has('PrometheusRule'));
  assert.equal(missingSecrets(objects['metrics'] ?? []), []);
});

guide.run();

type Texts = Readonly<Record<string, string>>;

/** Returns the Secrets, and their keys, to which objects refer and that no line of the guide makes. */
function missingSecrets(objects: readonly Manifest[]): string[] {
  const made = fs
    .readdirSync(folder)
    .filter((name) => name.startsWith('created.'))
    .map((name) => JSON.parse(read(name)) as Manifest)
    .filter(({ kind }) => kind === 'Secret')
    .flatMap(({ metadata, data = {} }) =>
      Object.keys(data).map((key) => `${metadata.name} ${key}`),
    );
  const needed: string[] = [];
  JSON.stringify(objects, (field, value: unknown) => {
    const { name, key, secretName } = (value ?? {}) as Readonly<Record<string, string>>;
    if (/^secretKeyRef$|^(credentials|bearerTokenSecret)$/.test(field))
      needed.push(`${name} ${key}`);
    if (secretName) needed.push(`${secretName} tls.crt`, `${secretName} tls.key`);
    return value;
  });
  assert.ok(needed.length > 5);
  return needed.filter((one) => !made.includes(one));
}
