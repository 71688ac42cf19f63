import { setMaxListeners } from 'node:events';
import { openConnection, sealer, type Open } from '@gateway/core/crypto';
import { proxyProcess } from '@gateway/core/http';
import { createLog } from '@gateway/core/logging';
import {
  activate,
  whySourceInactive,
  type ActivatedPlugins,
  type PluginState,
} from '@gateway/core/plugins';
import {
  listProjects,
  listSourcesOfProjects,
  type ProjectRow,
  type SourceOfProject,
} from '@gateway/store/config';
import { readHealthReport, type HealthReport } from '@gateway/server/health-report';
import type { Kv } from '@gateway/store/kv';
import type { Database } from '@gateway/store/postgres';
import { licenceOf } from '../app/installation.js';
import { withKv } from '../app/stores.js';
import { serverUrl } from '../output/account-text.js';
import { escapeLine } from '../output/escape-terminal.js';
import {
  failed,
  failedBy,
  ok,
  skipped,
  unknown,
  warning,
  type DoctorCheck,
  type DoctorContext,
  type DoctorResult,
} from './finding.js';

/** More projects, or sources, would take too long. */
const EXAMINED_MAX = 200;
const PROBE_MS = 5_000;
const LISTED = 20;

/**
 * As Overview shows it. Problems of a project are warnings: a failing endpoint is no fault of the
 * installation.
 */
export async function checkProjects(
  database: Database,
  context: DoctorContext,
): Promise<DoctorResult | DoctorCheck[]> {
  const { config } = context;
  const { content: examined, hasNextPage: hasMore } = await listProjects(
    database.knex,
    {},
    { perPage: EXAMINED_MAX, direction: 'next', sort: 'ASC' },
  );
  if (examined.length === 0) return skipped('there are none');
  const read = (kv?: Kv) => readReports(database, context, kv, examined);
  let unread = 'kv.type is in-memory, which only the gateway itself can read';
  const withRedis = async (kv: Kv) => {
    await kv.ping();
    unread = '';
    return read(kv);
  };
  const reports =
    config.kv.type === 'in-memory'
      ? await read()
      : await withKv(config, withRedis).catch(() => {
          unread = 'Redis does not answer';
          return read();
        });
  const unhealthy = reports.filter(({ findings }) => findings.length > 0);
  const healthy = reports.length - unhealthy.length;
  const rest: DoctorResult[] = [];
  if (unread !== '')
    rest.push(unknown(`circuit breakers and sources: ${unread}`, 'see Overview in the dashboard'));
  if (healthy > 0) rest.push(ok(`${healthy} of ${reports.length} are healthy`));
  if (unhealthy.length > LISTED)
    rest.push(skipped(`${unhealthy.length - LISTED} more have problems: see their Overview`));
  if (hasMore) rest.push(skipped(`projects after the first ${EXAMINED_MAX} were not examined`));
  return [
    ...unhealthy.slice(0, LISTED).flatMap((project) => findingChecks(serverUrl(config), project)),
    ...rest.map((it): DoctorCheck => ['projects', () => it]),
  ];
}

type ReportedProject = ProjectRow & Pick<HealthReport, 'findings'>;

/** Concurrent, because the projects share a probe of Postgres and KV. */
async function readReports(
  database: Database,
  { config, shards: opened }: DoctorContext,
  kv: Kv | undefined,
  projects: readonly ProjectRow[],
): Promise<ReportedProject[]> {
  const [{ healthProbe }, shards] = await Promise.all([import('@gateway/server/health'), opened]);
  const probed = { config, database, shards, kv };
  const probeHealth = healthProbe(probed, PROBE_MS);
  return Promise.all(
    projects.map(async (project) => {
      const { planes } = await shards.find(project.shard);
      const given = { database, planes, kv, project, probeHealth };
      return { ...project, ...(await readHealthReport(given)) };
    }),
  );
}

function findingChecks(url: string, { id, name, findings }: ReportedProject): DoctorCheck[] {
  return findings.map(({ severity, sentence, page, action }) => {
    const place = `${url}${page === '/instance' ? '' : `/projects/${id}`}${page}`;
    const found = severity === 'unknown' ? unknown : warning;
    return [
      `project ${escapeLine(name)}`,
      () => found(sentence, `${escapeLine(action)}: ${place}`),
    ];
  });
}

interface Asking extends Pick<ActivatedPlugins, 'sources' | 'pushSources'> {
  readonly table: readonly PluginState[];
  readonly open: Open;
  readonly signal: AbortSignal;
}

/** Each check queries the source's broker through its plugin. */
export async function checkSources(
  database: Database,
  context: DoctorContext,
): Promise<DoctorResult | DoctorCheck[]> {
  const { config, signal } = context;
  // Each source adds a listener to it.
  setMaxListeners(EXAMINED_MAX, signal);
  let open: Asking['open'];
  try {
    ({ open } = sealer(config.encryption_key));
  } catch {
    return skipped('because of the encryption key, which encrypts their secrets');
  }
  const all = await listSourcesOfProjects(database.pool);
  if (all.length === 0) return skipped('there are none');
  const table = context.checked.plugins;
  const asking = { ...(await sourcePlugins(context)), table, open, signal };
  const asked = all
    .slice(0, EXAMINED_MAX)
    .map((source): DoctorCheck => [
      `source ${escapeLine(source.name)}`,
      () => checkSource(source, asking),
    ]);
  const left = all.length - asked.length;
  return left > 0 ? [...asked, ['sources', () => skipped(`${left} more were not checked`)]] : asked;
}

async function checkSource(source: SourceOfProject, asking: Asking): Promise<DoctorResult> {
  const found = await askBroker(source, asking);
  const { id, paused_at: since, resumes_at: until, pause_reason: reason, paused_by: by } = source;
  if (!since || found.state === 'skipped') return found;
  const end = until
    ? `until ${until.toISOString()}`
    : `by ${escapeLine(by ?? 'a person')}, until it is resumed`;
  const pause = `paused since ${since.toISOString()} ${end}: ${(reason ?? '').replace(/\.$/, '')}`;
  if (found.state === 'failed')
    return { ...found, sentence: `${found.sentence}; it is also ${pause}` };
  const resume = `resume it as it is with \`gateway utils sources resume ${id}\` (POST …/sources/${id}/resume)`;
  const fix = until ? `correct its function, which resumes it, or ${resume}` : resume;
  return warning(`${found.sentence}; it is ${pause}`, fix);
}

async function askBroker(
  source: SourceOfProject,
  { sources, pushSources, table, open, signal }: Asking,
): Promise<DoctorResult> {
  const { pub_sub: pubSub } = source;
  if (pushSources.has(pubSub.type))
    return skipped(`${pubSub.type}: it has no broker; the server receives its messages`);
  const place = `${pubSub.type}, project ${escapeLine(source.project_name, 40)}`;
  if (source.is_disabled) return skipped(`${place}: it is disabled`);
  if (source.project_type !== 'outgoing')
    return skipped(`${place}: agents read only sources of outgoing projects`);
  const active = sources.get(pubSub.type);
  const inactive = whySourceInactive(table, pubSub.type);
  if (!active && inactive)
    return failed(`${place}: its plugin is inactive: ${inactive.reason}`, inactive.fix);
  if (!active) {
    const sentence = `${place}: no source plugin with this name is active; active plugins: ${[...sources.keys()].join(', ') || 'none'}`;
    return failed(sentence, 'run `gateway plugins` to see why');
  }
  try {
    const stored = (pubSub[pubSub.type] ?? {}) as Readonly<Record<string, unknown>>;
    const connection = openConnection(stored, active.connectionSchema, source.id, open);
    const plugin = await active.load();
    const advice = await plugin.check(connection, {
      signal,
      settings: active.settings,
      workers: pubSub.workers ?? 1,
    });
    return advice
      ? warning(`${place}: its broker answers. ${advice.message}`, advice.fix)
      : ok(`${place}: its broker answers`);
  } catch (error) {
    return failedBy(error, 'correct the connection of the source');
  }
}

/** Activates nothing else in the installation. */
async function sourcePlugins({
  discovery,
  resolved,
  config,
}: DoctorContext): Promise<ActivatedPlugins> {
  proxyProcess(config.delivery);
  return activate({
    discovery: { ...discovery, plugins: discovery.plugins.filter(({ kind }) => kind === 'source') },
    resolved,
    licence: licenceOf(config),
    serviceName: 'gateway-doctor',
    log: createLog({ level: 'silent', name: 'gateway-doctor' }),
  });
}
