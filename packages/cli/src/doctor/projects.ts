import type { Config } from '@gateway/core/config';
import type { HealthReport } from '@gateway/store/findings';
import { findRetryProjects, type RetryProject } from '@gateway/store/deliveries';
import type { Kv } from '@gateway/store/kv';
import { bothPlanes, type Database } from '@gateway/store/postgres';
import type { Shards } from '@gateway/store/shards';
import { withKv, withShards } from '../app/stores.js';
import { serverUrl } from '../output/account-text.js';
import { escapeLine } from '../output/escape-terminal.js';
import {
  ok,
  skipped,
  unknown,
  warning,
  type DoctorCheck,
  type DoctorContext,
  type DoctorResult,
} from './finding.js';

/** More would take too long. */
const PROJECTS_MAX = 200;
const PROBE_MS = 5_000;
const LISTED = 20;

/**
 * As Overview shows it. Problems of a project are warnings: a failing endpoint is no fault of the
 * installation.
 */
export async function checkProjects(
  database: Database,
  { config }: DoctorContext,
): Promise<DoctorResult | DoctorCheck[]> {
  const all = await findRetryProjects(bothPlanes(database), {});
  if (all.length === 0) return skipped('there are none');
  const examined = all.slice(0, PROJECTS_MAX);
  const read = (kv?: Kv) =>
    withShards(config, (shards) => readReports(config, { database, shards }, kv, examined));
  let unread = 'kv.type is in-memory, which only the gateway itself can read';
  const reports =
    config.kv.type === 'in-memory'
      ? await read()
      : await withKv(config, async (kv) => {
          await kv.ping();
          unread = '';
          return read(kv);
        }).catch(() => {
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
  if (all.length > examined.length)
    rest.push(skipped(`${all.length - examined.length} more were not examined`));
  return [
    ...unhealthy.slice(0, LISTED).flatMap((project) => findingChecks(config, project)),
    ...rest.map((it): DoctorCheck => ['projects', () => it]),
  ];
}

type ReportedProject = RetryProject & Pick<HealthReport, 'findings'>;

/** Concurrent, because the projects share a probe of Postgres and KV. */
async function readReports(
  config: Config,
  { database, shards }: { readonly database: Database; readonly shards: Shards },
  kv: Kv | undefined,
  projects: readonly RetryProject[],
): Promise<ReportedProject[]> {
  const [{ healthProbe }, { readHealthReport }] = await Promise.all([
    import('@gateway/server/health'),
    import('@gateway/store/findings'),
  ]);
  const probed = { config, database, shards, kv, billing: undefined };
  const probeHealth = healthProbe(probed, PROBE_MS);
  return Promise.all(
    projects.map(async (project) => {
      const { planes } = await shards.find(project.shard);
      const given = { database, planes, kv, project, probeHealth };
      return { ...project, ...(await readHealthReport(given)) };
    }),
  );
}

function findingChecks(config: Config, { id, name, findings }: ReportedProject): DoctorCheck[] {
  const url = serverUrl(config);
  return findings.map(({ severity, sentence, page, action }) => {
    const place = page === '/instance' ? `${url}${page}` : `${url}/projects/${id}${page}`;
    const found = severity === 'unknown' ? unknown : warning;
    return [
      `project ${escapeLine(name)}`,
      () => found(sentence, `${escapeLine(action)}: ${place}`),
    ];
  });
}
