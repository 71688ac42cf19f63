import { spawnSync } from 'node:child_process';
import { services } from './services.js';
import { startPrometheus } from './start/prometheus.js';

export interface QueryRow {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

export interface Prometheus {
  readonly url: string;
  /** Evaluates an expression now. Throws with the error of Prometheus. */
  query(expression: string): Promise<QueryRow[]>;
  /** The data of another API path: `targets`, `rules`. */
  get<Data>(path: string): Promise<Data>;
  close(): Promise<void>;
}

/**
 * Starts a Prometheus with a prometheus.yml, given as an object. Skips the test file if Prometheus
 * is not available.
 */
export async function prometheus(config: object): Promise<Prometheus> {
  const { prometheus: program } = await services.prometheus();
  const server = await startPrometheus(program, config);
  const get = async <Data>(path: string): Promise<Data> => {
    const response = await fetch(`${server.url}/api/v1/${path}`);
    const { data, error } = (await response.json()) as { data: Data; error?: string };
    if (error) throw new Error(`Prometheus answered to ${decodeURIComponent(path)}: ${error}`);
    return data;
  };
  return {
    url: server.url,
    get,
    query: async (expression) => {
      interface Row {
        metric: Record<string, string>;
        value: [number, string];
      }
      const { result, resultType } = await get<{ result: Row[]; resultType: string }>(
        `query?query=${encodeURIComponent(expression)}`,
      );
      if (resultType !== 'vector')
        throw new Error(`${expression} gives a ${resultType}, no vector`);
      return result.map(({ metric, value: [, value] }) => ({
        labels: metric,
        value: numberOf(value),
      }));
    },
    close: () => server.close(),
  };
}

/** Runs promtool. Skips the test file if it is not available. */
export async function promtool(
  args: readonly string[],
  options: { input?: string; cwd?: string } = {},
): Promise<{ code: number | null; output: string }> {
  const { promtool: program } = await services.prometheus();
  const { status, stdout, stderr, error } = spawnSync(program, args, {
    ...options,
    encoding: 'utf8',
    timeout: 120_000,
  });
  if (error) throw error;
  return { code: status, output: `${stdout}${stderr}` };
}

function numberOf(text: string): number {
  return text === '+Inf' ? Infinity : text === '-Inf' ? -Infinity : Number(text);
}
