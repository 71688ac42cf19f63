import { openConnection } from '@gateway/core/crypto';
import type { Resolved } from '@gateway/core/config';
import { createLog } from '@gateway/core/logging';
import { activate, readLicence, type ActiveSource, type Discovery } from '@gateway/core/plugins';
import { sealer } from '@gateway/core/crypto';
import { listSourcesOfProjects, type SourceOfProject } from '@gateway/store/config';
import type { Database } from '@gateway/store/postgres';
import { escapeLine } from '../output/escape-terminal.js';
import { failed, failedBy, ok, skipped, warning, type Finding } from './finding.js';

/** Beyond so many the brokers would be asked for long. */
const SOURCES_MAX = 200;

/** A source whose broker can be asked. */
export interface AskableSource {
  readonly check: string;
  ask(): Promise<Finding>;
}

/** What asks the broker of each source through its plugin. */
export async function openSources(
  database: Database,
  { resolved, discovery, signal }: { resolved: Resolved; discovery: Discovery; signal: AbortSignal },
): Promise<AskableSource[] | Finding> {
  const all = await listSourcesOfProjects(database.pool);
  if (all.length === 0) return skipped('sources', 'there are none');
  const plugins = await sourcePlugins(resolved, discovery);
  const { open } = sealer(resolved.config.encryption_key);
  const asked = all.slice(0, SOURCES_MAX).map((source) => {
    const check = `source ${escapeLine(source.name, 40)}`;
    return { check, ask: () => checkSource(check, source, { plugins, open, signal }) };
  });
  const left = all.length - asked.length;
  const unasked = { check: 'sources', ask: () => Promise.resolve(skipped('sources', `${left} more were not asked`)) };
  return left > 0 ? [...asked, unasked] : asked;
}

async function checkSource(check: string, source: SourceOfProject, parts: Parameters<typeof askBroker>[2]): Promise<Finding> {
  const found = await askBroker(check, source, parts);
  const { id, paused_at: since, resumes_at: until, pause_reason: reason } = source;
  if (!since || found.state === 'skipped') return found;
  const pause = `paused since ${since.toISOString()} until ${until?.toISOString()}: ${(reason ?? '').replace(/\.$/, '')}`;
  if (found.state === 'failed') return { ...found, sentence: `${found.sentence}; it is also ${pause}` };
  const fix = `correct its function, which resumes it, or resume it as it is with \`gateway utils sources resume ${id}\` (POST …/sources/${id}/resume)`;
  return warning(check, `${found.sentence}; it is ${pause}`, fix);
}

async function askBroker(
  check: string,
  { pub_sub: pubSub, project_name: project, project_type: type, is_disabled: isDisabled }: SourceOfProject,
  { plugins, open, signal }: { plugins: ReadonlyMap<string, ActiveSource>; open: (sealed: string) => string; signal: AbortSignal },
): Promise<Finding> {
  const place = `${pubSub.type}, project ${escapeLine(project, 40)}`;
  if (isDisabled) return skipped(check, `${place}: it is disabled`);
  if (type !== 'outgoing') return skipped(check, `${place}: agents read sources of outgoing projects alone`);
  const active = plugins.get(pubSub.type);
  if (!active) {
    const sentence = `${place}: no source plugin of that name is active; active are ${[...plugins.keys()].join(', ') || 'none'}`;
    return failed(check, sentence, 'see why with `gateway plugins`');
  }
  try {
    const stored = (pubSub[pubSub.type] ?? {}) as Readonly<Record<string, unknown>>;
    const connection = openConnection(stored, active.connectionSchema, open);
    await (await active.load()).check(connection, { signal, settings: active.settings });
    return ok(check, `${place}: its broker answers`);
  } catch (error) {
    return failedBy(check, error, 'correct the connection of the source');
  }
}

/** The source plugins that would be active. Nothing else of an installation is started. */
async function sourcePlugins(resolved: Resolved, discovery: Discovery): Promise<ReadonlyMap<string, ActiveSource>> {
  const { license_key: token, license_public_key: publicKey } = resolved.config;
  const { sources } = await activate({
    discovery: { ...discovery, plugins: discovery.plugins.filter(({ kind }) => kind === 'source') },
    resolved,
    licence: readLicence({ token, publicKey }),
    serviceName: 'gateway-doctor',
    log: createLog({ level: 'silent', name: 'gateway-doctor' }),
  });
  return sources;
}
