import { dirname } from 'node:path';
import { fileURLToPath } from 'node:url';
import { API_VERSION, homeOf, type PluginKind } from '@gateway/core/plugins';

export interface NewPlugin {
  readonly kind: PluginKind;
  readonly name: string;
  readonly packageName: string;
}

/** What an example of this kind stands on. */
const dependencies: Readonly<Record<PluginKind, { readonly own: object; readonly peer: object }>> = {
  source: { own: {}, peer: {} },
  tracer: {
    own: {
      '@opentelemetry/context-async-hooks': '^2.0.0',
      '@opentelemetry/core': '^2.0.0',
      '@opentelemetry/resources': '^2.0.0',
      '@opentelemetry/sdk-trace-base': '^2.0.0',
    },
    peer: { '@opentelemetry/api': '~1.9.1' },
  },
  metrics: { own: {}, peer: {} },
};

/**
 * The package.json of a new plugin.
 *
 * @param contract folder of the contracts, which the package is compiled against until it is published
 */
export function packageJsonOf({ kind, name, packageName }: NewPlugin, contract: string): object {
  const { own, peer } = dependencies[kind];
  const plugin = {
    kind,
    name,
    module: './dist/index.js',
    settings: './settings.json',
    ...(kind === 'source' ? { connection: './connection.json' } : {}),
    conformance: './dist/conformance.js',
  };
  return {
    name: packageName,
    version: '0.1.0',
    description: `The ${kind} plugin ${name} of the gateway.`,
    type: 'module',
    keywords: ['gateway-plugin'],
    engines: { node: '>=20.19' },
    gateway: { api: `^${API_VERSION}`, plugins: [plugin] },
    exports: './dist/index.js',
    files: ['dist', 'settings.json', ...(kind === 'source' ? ['connection.json'] : [])],
    scripts: { build: 'tsc', test: 'tsc && gateway plugins test .', prepack: 'tsc' },
    dependencies: own,
    peerDependencies: { '@gateway/plugin': '*', ...peer },
    devDependencies: {
      '@gateway/plugin': `file:${contract}`,
      '@gateway/plugin-conformance': `file:${dirname(dirname(fileURLToPath(import.meta.resolve('@gateway/plugin-conformance'))))}`,
      '@types/node': '^20.19.0',
      typescript: '~6.0.0',
    },
  };
}

/** How to go on, for a person. */
export function readmeOf({ kind, name, packageName }: NewPlugin): string {
  return `# ${packageName}

The ${kind} plugin \`${name}\` of the gateway.

\`\`\`sh
npm install
npm run build
gateway plugins test .        # runs the conformance suite
gateway plugins link .        # a gateway started in this folder uses it from now on
gateway plugins inspect ${name}
\`\`\`

| File | What it is |
|---|---|
| \`package.json\` | \`gateway\`: the manifest, all that the gateway reads before it imports anything |
| \`settings.json\` | settings of the plugin, below \`${homeOf(kind, name)}\`; they show up in help, \`gateway config\` and validation |
${kind === 'source' ? '| `connection.json` | JSON Schema of `pub_sub.' + name + '` of a source record; `"x-secret": true` marks secrets |\n' : ''}| \`src/index.ts\` | the plugin: its default export |
| \`src/conformance.ts\` | what the conformance suite needs to try it; not used when the gateway runs |

${activation[kind](name)}

Publish it with \`npm publish\`; users install it with \`gateway plugins install ${packageName}\`.
`;
}

const activation: Readonly<Record<PluginKind, (name: string) => string>> = {
  source: (name) =>
    `Sources of this kind are created over the API: \`{"name": "…", "type": "pub_sub", "pub_sub": {"type": "${name}", "${name}": {…}}}\`.`,
  tracer: (name) => `Select it with \`--tracer-type=${name}\` or \`GATEWAY_TRACER_PROVIDER=${name}\`.`,
  metrics: (name) =>
    `Select it with \`--metrics-backend=${name}\` or \`GATEWAY_METRICS_BACKEND=${name}\` and \`GATEWAY_METRICS_ENABLED=true\`.`,
};
