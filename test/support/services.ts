import { type CitusCluster, startCitus } from './start/citus.js';
import { type Browser, chromiumProgram } from './start/chromium.js';
import { go, goProgram } from './start/go.js';
import { type KafkaServer, startKafka } from './start/kafka.js';
import { type PgBouncer, startPgBouncer } from './start/pgbouncer.js';
import { type PostgresServer, startPostgres, startStandby } from './start/postgres.js';
import { type PrometheusPrograms, prometheusPrograms } from './start/prometheus-programs.js';
import { type RegistryServer, startRegistry } from './start/schema-registry.js';
import { type RedisServer, startRedis, startSentinel } from './start/redis.js';
import { python } from './start/python.js';
import { Unavailable } from './start/unavailable.js';

/** Access to the services that all test files share. */
interface Shared {
  /** The maintenance database, as superuser. `database()` creates a private one. */
  postgres: Pick<PostgresServer, 'url'>;
  /** A cluster, on which `database({ citus: true })` creates a private database. */
  citus: Pick<CitusCluster, 'url'>;
  /** Database 0. `redis()` allocates a private one. */
  redis: Pick<RedisServer, 'url'>;
  /**
   * Listeners as `host:port`, and the file with the authority's certificate. `kafka()` creates
   * private topics.
   */
  kafka: Pick<KafkaServer, 'listeners' | 'caFile' | 'client'>;
  /** The programs; every test file starts its instances. */
  prometheus: PrometheusPrograms;
  /** The program; `openBrowser()` starts an instance. */
  chromium: Browser;
}

type Service = keyof Shared;
type Env = Readonly<Record<string, string | undefined>>;

/** Starts a service, and passes it from `npm test` to the test processes. */
interface Kind<Name extends Service> {
  start(): Promise<Shared[Name] & { close(): Promise<void> }>;
  write(shared: Shared[Name]): Env;
  /** Undefined without the variables. */
  read(env: Env): Shared[Name] | undefined;
}

const kinds: { readonly [Name in Service]: Kind<Name> } = {
  postgres: {
    // Autovacuum would analyze small tables, at any time, and change plans that tests check.
    start: () => startPostgres({ autovacuum: 'off' }),
    write: ({ url }) => ({ TEST_POSTGRES_URL: url }),
    read: ({ TEST_POSTGRES_URL: url }) => (url ? { url } : undefined),
  },
  citus: {
    start: () => startCitus(),
    write: ({ url }) => ({ TEST_CITUS_URL: url }),
    read: ({ TEST_CITUS_URL: url }) => (url ? { url } : undefined),
  },
  redis: {
    start: () => startRedis(),
    write: ({ url }) => ({ TEST_REDIS_URL: url }),
    read: ({ TEST_REDIS_URL: url }) => (url ? { url } : undefined),
  },
  kafka: {
    start: () => startKafka(),
    write: ({ listeners, caFile, client }) => ({
      TEST_KAFKA_BROKERS: listeners.plaintext,
      TEST_KAFKA_SASL_PLAINTEXT: listeners.saslPlaintext,
      TEST_KAFKA_SASL_SSL: listeners.saslSsl,
      TEST_KAFKA_SSL: listeners.ssl,
      TEST_KAFKA_MUTUAL: listeners.mutual,
      TEST_KAFKA_SASL_MUTUAL: listeners.saslMutual,
      TEST_KAFKA_CA: caFile,
      TEST_KAFKA_CLIENT_CERTIFICATE: client.certificate,
      TEST_KAFKA_CLIENT_KEY: client.key,
    }),
    read: (env) => {
      const plaintext = env['TEST_KAFKA_BROKERS'];
      if (!plaintext) return undefined;
      const names = [
        'SASL_PLAINTEXT',
        'SASL_SSL',
        'SSL',
        'MUTUAL',
        'SASL_MUTUAL',
        'CA',
        'CLIENT_CERTIFICATE',
        'CLIENT_KEY',
      ];
      const missing = names.filter((name) => !env[`TEST_KAFKA_${name}`]);
      if (missing.length > 0)
        throw new Error(
          `TEST_KAFKA_BROKERS is set: set TEST_KAFKA_${missing.join(', TEST_KAFKA_')} too, or none`,
        );
      const [saslPlaintext, saslSsl, ssl, mutual, saslMutual, caFile, certificate, key] = names.map(
        (name) => env[`TEST_KAFKA_${name}`],
      ) as [string, string, string, string, string, string, string, string];
      return {
        listeners: { plaintext, saslPlaintext, saslSsl, ssl, mutual, saslMutual },
        caFile,
        client: { certificate, key },
      };
    },
  },
  prometheus: {
    start: async () => ({ ...prometheusPrograms(), close: async () => undefined }),
    write: ({ prometheus, promtool }) => ({ TEST_PROMETHEUS: prometheus, TEST_PROMTOOL: promtool }),
    read: ({ TEST_PROMETHEUS: prometheus, TEST_PROMTOOL: promtool }) =>
      prometheus && promtool ? { prometheus, promtool } : undefined,
  },
  chromium: {
    start: async () => ({ ...chromiumProgram(), close: async () => undefined }),
    write: ({ program }) => ({ TEST_CHROMIUM: program }),
    read: ({ TEST_CHROMIUM: program }) => (program ? { program } : undefined),
  },
};

/**
 * The services that all test files share. `npm test` starts one of each and passes it on in
 * `TEST_*` variables; a test file run directly starts a private one at the first call, which ends
 * with the process. If a service is not available on this machine, the process ends as skipped,
 * with the reason; with `CI=true` it fails.
 */
export const services = {
  postgres: once(() => shared('postgres')),
  citus: once(() => shared('citus')),
  redis: once(() => shared('redis')),
  kafka: once(() => shared('kafka')),
  prometheus: once(() => shared('prometheus')),
  chromium: once(() => shared('chromium')),
};

/**
 * Private services, for tests that stop, crash or flush them. Each call starts a new one; the
 * caller closes it. They skip as `services` do.
 */
export const own = {
  postgres: (settings?: Readonly<Record<string, string | number>>): Promise<PostgresServer> =>
    orSkip(() => startPostgres(settings)),
  /** A streaming replica of a private Postgres. */
  standby: (...options: Parameters<typeof startStandby>): Promise<PostgresServer> =>
    orSkip(() => startStandby(...options)),
  pgbouncer: (...options: Parameters<typeof startPgBouncer>): Promise<PgBouncer> =>
    orSkip(() => startPgBouncer(...options)),
  redis: (settings?: Readonly<Record<string, string | number>>): Promise<RedisServer> =>
    orSkip(() => startRedis(settings)),
  sentinel: (...options: Parameters<typeof startSentinel>): Promise<RedisServer> =>
    orSkip(() => startSentinel(...options)),
  kafka: (options?: Parameters<typeof startKafka>[0]): Promise<KafkaServer> =>
    orSkip(() => startKafka(options)),
  registry: (): Promise<RegistryServer> => orSkip(() => startRegistry()),
  /** The path of a Python with these PyPI packages. */
  python: (...requirements: string[]): Promise<string> => orSkip(async () => python(requirements)),
  /** The path of Go 1.21 or newer. */
  go: (): Promise<string> => orSkip(async () => go()),
  /** The path of a program in Go, such as `helm.sh/helm/v4/cmd/helm@v4.3.0`. */
  goProgram: (source: string): Promise<string> => orSkip(async () => goProgram(source)),
};

/**
 * Starts the named services for `npm test`, unless the environment already has them.
 * @returns the variables for the test files, a sentence per unavailable service, and a function
 * that stops all
 */
export async function startShared(
  names: readonly Service[],
): Promise<{ env: Env; missing: string[]; close(): Promise<void> }> {
  let env: Env = {};
  const missing: string[] = [];
  const started: { close(): Promise<void> }[] = [];
  const close = async () => void (await Promise.all(started.map((server) => server.close())));
  async function start<Name extends Service>(name: Name): Promise<void> {
    const kind: Kind<Name> = kinds[name];
    const reason = process.env[unavailable(name)];
    if (reason) missing.push(reason);
    if (reason || kind.read(process.env)) return;
    try {
      const server = await kind.start();
      started.push(server);
      env = { ...env, ...kind.write(server) };
    } catch (error) {
      if (!(error instanceof Unavailable)) throw error;
      missing.push(error.message);
      env = { ...env, [unavailable(name)]: error.message };
    }
  }
  const results = await Promise.allSettled(names.map(start));
  const failed = results.find((result) => result.status === 'rejected');
  if (failed) {
    await close();
    throw failed.reason;
  }
  return { env, missing, close };
}

/** Ends this process as skipped; with `CI=true` as failed. */
function skip(reason: string): never {
  process.stdout.write(`\nSKIPPED: ${reason}\n`);
  process.exit(process.env['CI'] === 'true' ? 1 : 0);
}

async function shared<Name extends Service>(name: Name): Promise<Shared[Name]> {
  const kind: Kind<Name> = kinds[name];
  const missing = process.env[unavailable(name)];
  if (missing) skip(missing);
  return kind.read(process.env) ?? orSkip(() => kind.start());
}

async function orSkip<T>(start: () => Promise<T>): Promise<T> {
  try {
    return await start();
  } catch (error) {
    if (error instanceof Unavailable) skip(error.message);
    throw error;
  }
}

function unavailable(name: Service): string {
  return `TEST_${name.toUpperCase()}_UNAVAILABLE`;
}

function once<T>(make: () => Promise<T>): () => Promise<T> {
  let made: Promise<T> | undefined;
  return () => (made ??= make());
}
