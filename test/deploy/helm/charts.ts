import { execFile, execFileSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { own } from '../../support/services.js';
import { tempFolder } from '../../support/start/keep.js';

export const root = fileURLToPath(new URL('../../..', import.meta.url));
export const chart = path.join(root, 'deploy/helm/gateway');
const folder = path.join(root, 'test/deploy/helm');

/** Value files, by name. */
export const valueFiles: Readonly<Record<string, string>> = Object.fromEntries(
  fs
    .readdirSync(path.join(folder, 'values'))
    .map((name) => [path.basename(name, '.yaml'), path.join(folder, 'values', name)]),
);

/** An object of Kubernetes, as far as tests read it. */
export interface Manifest {
  readonly kind: string;
  readonly metadata: {
    readonly name: string;
    readonly labels?: Readonly<Record<string, string>>;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly data?: Readonly<Record<string, string>>;
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- the kinds differ
  readonly spec?: any;
}

/** Runs Helm; a failure has its error output as message. */
export type Helm = (...args: readonly string[]) => Promise<string>;

/** Returns the path of a Helm of this version: `4.3.0`. */
export function helmProgram(version: string): Promise<string> {
  const major = version.split('.')[0];
  return own.goProgram(`helm.sh/helm/v${major}/cmd/helm@v${version}`);
}

/** Returns a Helm of this version. */
export async function helmOf(version: string): Promise<Helm> {
  const program = await helmProgram(version);
  const run = promisify(execFile);
  return async (...args) => {
    const { stdout } = await run(program, args, { maxBuffer: 1 << 26 });
    return stdout;
  };
}

/**
 * Renders the chart, as an installation of release `gateway`. The Helm that Go builds knows no
 * version of Kubernetes.
 */
export function rendered(helm: Helm, of: string, ...args: readonly string[]): Promise<string> {
  return helm('template', 'gateway', of, '--namespace=hooks', '--kube-version=1.37.0', ...args);
}

/**
 * Parses and validates YAML by the schemas of Kubernetes, KEDA and the Prometheus Operator.
 * @param files text by name
 */
export async function validated(files: Readonly<Record<string, string>>): Promise<{
  objects: Readonly<Record<string, readonly Manifest[]>>;
  problems: readonly string[];
}> {
  const python = await own.python(
    'kubernetes-validate==1.37.0',
    'cloudcoil.models.keda==2.16.1.0',
    'cloudcoil.models.prometheus_operator==0.80.1.0',
    'pydantic==2.12.5',
  );
  const texts = tempFolder('rendered');
  for (const [name, text] of Object.entries(files))
    fs.writeFileSync(path.join(texts, `${name}.yaml`), text);
  return JSON.parse(
    execFileSync(python, [path.join(folder, 'validate.py'), texts], {
      encoding: 'utf8',
      maxBuffer: 1 << 26,
    }),
  ) as { objects: Record<string, Manifest[]>; problems: string[] };
}
