// deadline: 900 s, long
import fs from 'node:fs';
import path from 'node:path';
import { Ajv2020 } from 'ajv/dist/2020.js';
import { suite } from 'uvu';
import * as assert from 'uvu/assert';
import { resolveConfig } from '#core/config/config';
import { envOf } from '#core/config/settings';
import { discover } from '#core/plugins/discovery';
import { packChart } from '../../../scripts/release/chart.mjs';
import { tempFolder } from '../../support/start/keep.js';
import { chart, helmOf, rendered, root, validated, valueFiles, type Manifest } from './charts.js';

const charts = suite('deploy/helm/chart');
const helm = await helmOf('4.3.0');
const { rows } = discover({ root });
const schema = new Ajv2020({ strict: false }).compile(
  JSON.parse(read('values.schema.json')) as object,
);
const minimal = `--values=${valueFiles['minimal']}`;

const texts: Record<string, string> = {};
for (const [name, file] of Object.entries(valueFiles))
  texts[name] = await rendered(helm, chart, `--values=${file}`);
const { objects, problems } = await validated(texts);

charts('Helm has nothing to criticise', async () => {
  assert.is(Object.keys(valueFiles).length, 12);
  for (const file of Object.values(valueFiles))
    await helm('lint', '--strict', chart, `--values=${file}`, '--kube-version=1.37.0');
});

charts('objects follow the schemas of the oldest and the newest Kubernetes', () => {
  assert.equal(problems, []);
});

charts('the schemas find a field that does not exist', async () => {
  const { problems } = await validated({
    job: (texts['minimal'] ?? '').replace('backoffLimit:', 'backofLimit:'),
    scaled: (texts['keda'] ?? '').replace('pollingInterval:', 'pollInterval:'),
  });
  assert.is(problems.length, 2, problems.join('\n'));
  assert.match(problems[0] ?? '', 'backofLimit');
  assert.match(problems[1] ?? '', 'pollInterval');
});

charts('pods run without rights, and write to /tmp alone', () => {
  for (const { name, spec } of pods()) {
    const [container] = spec.containers;
    assert.is(spec.enableServiceLinks, false, name);
    assert.is(spec.automountServiceAccountToken, false, name);
    assert.is(spec.securityContext.runAsNonRoot, true, name);
    assert.is(spec.securityContext.seccompProfile.type, 'RuntimeDefault', name);
    assert.equal(
      container.securityContext,
      {
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      },
      name,
    );
    const writable = container.volumeMounts.filter((it: { readOnly?: true }) => !it.readOnly);
    assert.equal(writable, [{ name: 'tmp', mountPath: '/tmp' }], name);
  }
});

charts('pods are probed as the guide says, and have time to drain', () => {
  for (const { file, name, spec } of pods().filter((it) => it.kind === 'Deployment')) {
    const [{ ports, args, ...container }] = spec.containers;
    const isTls = file === 'server-tls' && args[0] === 'server';
    const scheme = isTls ? 'HTTPS' : 'HTTP';
    assert.equal(container.livenessProbe.httpGet, { path: '/healthz', port: 'http', scheme }, name);
    assert.is(container.startupProbe.httpGet.path, '/healthz', name);
    assert.is(container.readinessProbe.httpGet.path, '/healthz?ready', name);
    assert.is(ports[0].containerPort, args[0] === 'server' ? 5005 : 5008, name);
    const drain = file === 'server-tls' ? 20 + 120 : 25;
    assert.is(spec.terminationGracePeriodSeconds, drain + 10, name);
  }
});

charts('secrets come from Secrets, also those of the settings', () => {
  const secret = Object.entries(rows).filter(([, row]) => row.secret);
  assert.ok(secret.length > 10);
  const image = { repository: 'registry.example.com/gateway' };
  const secretEnv = { GATEWAY_ENCRYPTION_KEY: { name: 'gateway', key: 'key' } };
  assert.ok(schema({ image, secretEnv }), JSON.stringify(schema.errors));
  const accepted = secret.flatMap(([key, row]) => {
    const config = key
      .split('.')
      .reduceRight<unknown>((value, part) => ({ [part]: value }), 'secret');
    const variable = envOf(key, row);
    return [
      ...(schema({ image, secretEnv, config }) ? [`config.${key}`] : []),
      ...(schema({ image, secretEnv, env: { [variable]: 'secret' } }) ? [`env.${variable}`] : []),
    ];
  });
  assert.equal(accepted, []);
});

charts('the gateway accepts every gateway.json, with what the Secrets hold', () => {
  const secrets: Readonly<Record<string, string>> = {
    GATEWAY_ENCRYPTION_KEY: Buffer.alloc(32).toString('base64'),
    GATEWAY_PROXY: 'http://user:password@proxy.example.com:3128',
  };
  for (const [file, manifests] of Object.entries(objects)) {
    const pod = pods(file).find(({ kind }) => kind === 'Job')?.spec;
    const named = Object.fromEntries(
      (pod?.containers[0].env as { name: string; value?: string }[])
        .filter(({ name }) => name.startsWith('GATEWAY_'))
        .map(({ name, value }) => [name, value ?? secrets[name] ?? 'secret']),
    );
    // `envFrom` names no variables.
    const env = pod?.containers[0].envFrom ? { ...secrets, ...named } : named;
    const configs = manifests.filter(
      ({ kind, data }) => kind === 'ConfigMap' && data?.['gateway.json'],
    );
    assert.is(configs.length, 2, file);
    for (const { data } of configs) {
      const text = data?.['gateway.json'] ?? '';
      const { config } = resolveConfig({
        env,
        file: JSON.parse(text) as Record<string, unknown>,
        rows,
      });
      assert.is(config.metrics.enabled, ['everything', 'server-tls'].includes(file), file);
    }
  }
});

charts('settings of a plugin of another author are accepted', () => {
  const secretEnv = { GATEWAY_ENCRYPTION_KEY: { name: 'gateway', key: 'key' } };
  const config = {
    enable_feature_flag: ['redis-streams'],
    source: { 'redis-streams': { url: 'redis://redis' } },
  };
  assert.ok(
    schema({ image: { repository: 'x' }, secretEnv, config }),
    JSON.stringify(schema.errors),
  );
});

charts('OpenShift may choose the users of the pods', () => {
  for (const { spec } of pods('openshift'))
    assert.equal(spec.securityContext, {
      runAsNonRoot: true,
      seccompProfile: { type: 'RuntimeDefault' },
    });
});

charts('the Job of the migrations is placed and labelled as the values say', () => {
  const job = objects['extended']?.find(({ kind }) => kind === 'Job');
  const { metadata, spec } = job?.spec.template as Manifest;
  assert.is(job?.metadata.annotations?.['argocd.argoproj.io/sync-wave'], '-1');
  assert.is(metadata.annotations?.['sidecar.istio.io/inject'], 'false');
  assert.is(metadata.labels?.['job'], 'migrate');
  assert.equal(spec.nodeSelector, { pool: 'webhooks' });
  assert.is(spec.tolerations[0].key, 'webhooks');
  assert.is(spec.priorityClassName, 'high');
  assert.ok(spec.affinity.nodeAffinity);
  // It would not end while another container runs.
  assert.is(spec.containers.length, 1);
});

charts('every pod gets the containers, variables and volumes of the values', () => {
  for (const { name, kind, spec } of pods('extended')) {
    const names = (list: { name: string }[]) => list.map((it) => it.name);
    assert.equal(names(spec.initContainers), ['plugins', 'database-proxy'], name);
    const [{ env, envFrom, volumeMounts }] = spec.containers;
    assert.equal(envFrom, [{ secretRef: { name: 'gateway' } }], name);
    assert.equal(
      env.find((it: { name: string }) => it.name === 'NODE_NAME')?.valueFrom,
      { fieldRef: { fieldPath: 'spec.nodeName' } },
      name,
    );
    assert.ok(names(volumeMounts).includes('plugins'), name);
    assert.ok(names(spec.volumes).includes('plugins'), name);
    if (kind === 'Job') continue;
    assert.is(names(spec.containers)[1], 'log-shipper', name);
    assert.is(names(env).includes('NODE_OPTIONS'), name === 'gateway-server', name);
  }
});

charts('every object has the common labels and annotations', () => {
  const manifests = objects['extended'] ?? [];
  assert.ok(manifests.length > 10);
  for (const { kind, metadata, spec } of manifests.filter(
    (it) => it.metadata.name !== 'gateway-extra',
  ))
    for (const it of [metadata, ...(spec?.template ? [spec.template.metadata] : [])]) {
      assert.is(it.labels?.team, 'platform', `${kind} ${metadata.name}`);
      assert.is(it.annotations?.['example.com/owner'], 'platform', `${kind} ${metadata.name}`);
    }
  const extra = manifests.find(({ metadata }) => metadata.name === 'gateway-extra');
  assert.equal(extra?.data, { release: 'gateway' });
});

charts('the Ingress publishes the API and every page, and no metrics', () => {
  const source = fs.readFileSync(path.join(root, 'packages/dashboard/src/app/routes.ts'), 'utf8');
  const [, outside = ''] = source.split('const OUTSIDE');
  const segments = [...outside.matchAll(/^ {2}\['([\w-]+)'/gm)].map(([, name]) => `/${name}`);
  assert.ok(segments.length > 4);
  const wanted = [
    '/ingest',
    '/api',
    '/convoy',
    '/docs',
    '/assets',
    '/sign-in',
    '/portal',
    '/projects',
    ...segments,
  ];
  for (const [file, prefix] of [
    ['everything', ''],
    ['extended', '/hooks'],
  ] as const) {
    const { rules } = objects[file]?.find(({ kind }) => kind === 'Ingress')?.spec as {
      rules: { http: { paths: { path: string; pathType: string }[] } }[];
    };
    for (const { http } of rules) {
      const isPublished = (path: string) =>
        http.paths.some((it) =>
          it.pathType === 'Exact'
            ? it.path === path
            : path === it.path || path.startsWith(it.path.replace(/\/?$/, '/')),
        );
      for (const path of ['/', ...wanted, '/projects/1/events'])
        assert.ok(isPublished(prefix + path), `${file}: ${path}`);
      for (const path of ['/metrics', `${prefix}/metrics`, `${prefix}/metrics/`])
        assert.not.ok(isPublished(path), `${file}: ${path}`);
    }
  }
});

charts('an Ingress has several names, each with its certificate', () => {
  const { rules, tls } = objects['extended']?.find(({ kind }) => kind === 'Ingress')?.spec as {
    rules: { host: string }[];
    tls: object[];
  };
  const hosts = ['example.com', 'www.example.com'];
  assert.equal(
    rules.map(({ host }) => host),
    [...hosts, 'hooks.internal'],
  );
  assert.equal(tls, [{ secretName: 'example-tls', hosts }]);
});

charts('migrations run before the other objects exist', () => {
  for (const [file, manifests] of Object.entries(objects)) {
    const hooks = manifests.filter(isHook);
    const [job] = hooks.filter(({ kind }) => kind === 'Job');
    const pod = job?.spec.template.spec;
    assert.equal(pod.containers[0].args, ['migrate', 'up'], file);
    const config = pod.volumes.find(({ name }: { name: string }) => name === 'config');
    const needed = hooks.map(({ kind, metadata }) => `${kind} ${metadata.name}`);
    assert.ok(needed.includes(`ConfigMap ${config.configMap.name}`), file);
    assert.is(pod.serviceAccountName, undefined, file);
    const policies = manifests.filter(({ kind }) => kind === 'NetworkPolicy');
    assert.is(policies.filter(isHook).length, policies.length / 3, file);
  }
});

charts('a rollout replaces one pod at a time; that of the servers can wait for the agents', () => {
  const deployments = pods('everything').filter(({ kind }) => kind === 'Deployment');
  assert.equal(deployments.map(({ name, paused }) => [name, paused]).sort(), [
    ['gateway-hooks-events', undefined],
    ['gateway-hooks-retry', undefined],
    ['gateway-hooks-server', true],
  ]);
  for (const { strategy } of pods().filter(({ kind }) => kind === 'Deployment'))
    assert.equal(strategy.rollingUpdate, { maxSurge: 1, maxUnavailable: 0 });
});

charts('an autoscaler owns the number of pods', () => {
  for (const file of ['autoscaling', 'keda', 'everything'])
    for (const { kind, spec } of objects[file] ?? []) {
      const target = spec?.scaleTargetRef?.name;
      if (!target || kind === 'Deployment') continue;
      const deployment = objects[file]?.find(
        (it) => it.kind === 'Deployment' && it.metadata.name === target,
      );
      assert.ok(deployment, `${file}: ${kind} scales ${target}`);
      assert.is(deployment?.spec.replicas, undefined, target);
    }
});

charts(
  'groups of agents have Deployments of their own, and /ingest leads to one that takes events',
  () => {
    const args = pods('agent-groups').map(({ spec }) => spec.containers[0].args.join(' '));
    assert.equal(args.sort(), [
      'agent --mode events --consumers 200',
      'agent --mode retry --consumers 200',
      'migrate up',
      'server',
    ]);
    const ingress = objects['agent-groups']?.find(({ kind }) => kind === 'Ingress');
    assert.is(ingress?.spec.rules[0].http.paths[0].backend.service.name, 'gateway-events');
  },
);

charts('values that contradict each other are refused with the fix', async () => {
  await rendered(helm, chart, '--set=image.repository=x').then(
    () => assert.unreachable('without an encryption key'),
    (error: Error) =>
      assert.match(error.message, /name its Secret in secretEnv.GATEWAY_ENCRYPTION_KEY/),
  );
  for (const [args, message] of [
    ['image.repository=', /repository/],
    ['config.database.password=x', /password/],
    ['server.http=1', /server/],
    ['agent.keda.enabled=true', /keda\.triggers is empty: name at least one/],
    ['agent.keda.enabled=true,agent.autoscaling.enabled=true', /exclude each other.*: disable one/],
    ['metrics.serviceMonitor.enabled=true', /needs metrics\.enabled.*: enable both/],
    ['ingress.enabled=true', /set ingress\.host or ingress\.hosts/],
    ['env.PORT=5006', /PORT/],
    ['server.env.GATEWAY_ROOT_PATH=/hooks', /GATEWAY_ROOT_PATH/],
    ['config.server.http.prot=1', /prot/],
    ['config.consumer_pool_size=many', /consumer_pool_size/],
    ['config.tracer.otel.colector=x', /colector/],
    ['migrate.extraContainers[0].name=x', /extraContainers/],
    ['agent.priorityClas=x', /priorityClas/],
    [
      'metrics.enabled=true,server.service.type=NodePort',
      /NodePort publishes \/metrics without a token.*secretEnv\.GATEWAY_METRICS_BEARER_TOKEN/,
    ],
  ] as const)
    await rendered(helm, chart, minimal, `--set=${args}`).then(
      () => assert.unreachable(args),
      (error: Error) => assert.match(error.message, message),
    );
});

charts(
  'the packed chart is the chart of the repository, with the version of the release',
  async () => {
    const out = tempFolder('chart');
    const [archive = ''] = await packChart({ root, out, version: '9.8.7' });
    const bytes = fs.readFileSync(archive);
    await packChart({ root, out, version: '9.8.7' });
    assert.ok(bytes.equals(fs.readFileSync(archive)), 'packed twice, the archives differ');
    const everything = `--values=${valueFiles['everything']}`;
    const packed = await rendered(helm, archive, everything);
    assert.match(packed, 'image: "registry.example.com/gateway:9.8.7"');
    const { version } = JSON.parse(fs.readFileSync(path.join(root, 'package.json'), 'utf8')) as {
      version: string;
    };
    assert.is(packed.replaceAll('9.8.7', version), texts['everything']);
    assert.match(packed, 'alert: GatewayProcessDown');
  },
);

charts.run();

function read(name: string): string {
  return fs.readFileSync(path.join(chart, name), 'utf8');
}

function isHook({ metadata }: Manifest): boolean {
  return metadata.annotations?.['helm.sh/hook'] === 'pre-install,pre-upgrade';
}

/** The pods of all files, or of one. */
function pods(only?: string) {
  return Object.entries(objects)
    .filter(([file]) => only === undefined || file === only)
    .flatMap(([file, manifests]) =>
      manifests
        .filter(({ spec }) => spec?.template)
        .map(({ kind, metadata, spec: { template, paused, strategy } }) => ({
          file,
          kind,
          name: metadata.name,
          paused,
          strategy,
          spec: template.spec,
        })),
    );
}
