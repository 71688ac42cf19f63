import type { Discovery } from '@gateway/core/plugins';
import type { Resolved } from '@gateway/core/config';
import { withTimeout } from '@gateway/core/process';
import type { CheckedConfig } from '../config/check.js';
import { openDatabase, type Database, type DatabaseFacts } from '@gateway/store/postgres';
import { checkAgents, checkClock, checkDatabase, checkMigrations } from './database.js';
import { failedBy, skipped, type Finding } from './finding.js';
import { checkKv } from './kv.js';
import { checkOpenFiles, checkProxy, checkSandbox, checkSmtp } from './machine.js';
import { checkPort, placesOf } from './ports.js';
import { checkEncryptionKey, checkLicence, checkPlugins, checkSettings } from './settings.js';
import { openSources } from './sources.js';

/** The time limit for all checks together. */
const DEADLINE_MS = 10_000;
/** The checks that need settings, in the order of the report. */
const NEED_SETTINGS =
  'encryption key, licence, database, migrations, clock, agents, kv, plugins, sources, ports, sandbox, smtp, proxy'.split(', ');

export interface Examined {
  readonly checked: CheckedConfig;
  /** Undefined when the settings are wrong: nothing else can be checked then. */
  readonly resolved: Resolved | undefined;
  readonly discovery: Discovery;
  /** Address that a test mail is sent to. */
  readonly smtpTo: string | undefined;
}

/**
 * Checks everything that a gateway depends on, all at once. Skips what depends on a failed check. Changes nothing.
 *
 * @returns findings in the order of the checks, each as soon as it and those before it are known
 */
export async function* examine(
  { checked, resolved, discovery, smtpTo }: Examined,
  { withinMs = DEADLINE_MS }: { withinMs?: number } = {},
): AsyncGenerator<Finding> {
  yield checkSettings(checked, resolved === undefined);
  if (!resolved) {
    for (const check of NEED_SETTINGS) yield skipped(check, 'because the settings are wrong');
    yield checkOpenFiles();
    return;
  }
  const { config } = resolved;
  const endsAt = Date.now() + withinMs;
  // Later than the time limit of a check, whose sentence says more.
  const signal = AbortSignal.timeout(withinMs + 100);
  /** Runs a check until the deadline. An error and a timeout become a failed finding. */
  const bound = async <Found>(check: string, work: () => Found | Promise<Found>): Promise<Found | Finding> => {
    try {
      return await withTimeout((async () => work())(), endsAt - Date.now(), `no answer within ${withinMs / 1000} s`);
    } catch (error) {
      const fix = 'check that it runs and that a firewall lets this machine reach it';
      return failedBy(check, error, (error as NodeJS.ErrnoException).code === 'ETIMEDOUT' ? fix : undefined);
    }
  };
  let database: Database | undefined;
  let facts: DatabaseFacts | undefined;
  try {
    const key = checkEncryptionKey(config);
    const reached = bound('database', async () => {
      database = openDatabase(config.database, { poolSize: 4, name: 'gateway-doctor' });
      const found = await checkDatabase(database, config);
      facts = found.facts;
      return found.finding;
    });
    /** A check that needs Postgres. */
    const onDatabase = <Found>(check: string, work: (database: Database, facts: DatabaseFacts) => Found | Promise<Found>) =>
      bound<Found | Finding>(check, async () => {
        await reached;
        return database && facts ? work(database, facts) : skipped(check, 'because of the database');
      });
    const migrations = onDatabase('migrations', checkMigrations);
    /** A check that needs migrated tables. */
    const onTables = <Found>(check: string, work: (database: Database) => Found | Promise<Found>) =>
      onDatabase<Found | Finding>(check, async (open) =>
        (await migrations).state === 'ok' ? work(open) : skipped(check, 'because of the migrations'),
      );
    const sources = onTables('sources', (open) => {
      if (key.state !== 'ok') return skipped('sources', 'because of the encryption key, which their secrets are sealed with');
      return openSources(open, { resolved, discovery, signal });
    }).then((found) => ('state' in found ? [found] : Promise.all(found.map(({ check, ask }) => bound(check, ask)))));

    const findings: readonly (Finding | readonly Finding[] | Promise<Finding | readonly Finding[]>)[] = [
      key,
      checkLicence(config),
      reached,
      migrations,
      onDatabase('clock', (_database, found) => checkClock(found)),
      onTables('agents', checkAgents),
      bound('kv', () => checkKv(config)),
      checkPlugins(checked, resolved),
      sources,
      ...placesOf(config).map((place) => bound(place.check, () => checkPort(place))),
      bound('sandbox', () => checkSandbox(config)),
      checkOpenFiles(),
      bound('smtp', () => checkSmtp(config, smtpTo)),
      bound('proxy', () => checkProxy(config, signal)),
    ];
    for (const found of findings) yield* [await found].flat();
  } finally {
    // Statements that still run are not waited for.
    void database?.close().catch(() => undefined);
  }
}
