import type { Discovery } from '@gateway/core/plugins';
import type { Resolved } from '@gateway/core/config';
import type { CheckedConfig } from '../config/check.js';
import { openDatabase, type Database } from '@gateway/store/postgres';
import { checkAgents, checkClock, checkDatabase, checkMigrations } from './database.js';
import { deadlineIn } from './deadline.js';
import { failedBy, skipped, type Finding } from './finding.js';
import { checkKv } from './kv.js';
import { checkOpenFiles, checkProxy, checkSandbox, checkSmtp } from './machine.js';
import { checkPort, placesOf } from './ports.js';
import { checkEncryptionKey, checkLicence, checkPlugins, checkSettings } from './settings.js';
import { openSources } from './sources.js';

/** Everything together takes no longer. */
const DEADLINE_MS = 10_000;
/** What needs settings, in the order of the answer. */
const NEED_SETTINGS =
  'encryption key, licence, database, migrations, clock, agents, kv, plugins, sources, ports, sandbox, smtp, proxy'.split(', ');

export interface Examined {
  readonly checked: CheckedConfig;
  /** Undefined when the settings are wrong: nothing can be looked at then. */
  readonly resolved: Resolved | undefined;
  readonly discovery: Discovery;
  /** Address that a test mail is sent to. */
  readonly smtpTo: string | undefined;
}

/**
 * Looks at all that a gateway stands on, everything at once; what depends on something that failed is skipped. Changes nothing.
 *
 * @returns findings in the order of the checks, each as soon as it and those before it are there
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
  const deadline = deadlineIn(withinMs);
  const { bound } = deadline;
  let database: Database | undefined;
  try {
    const key = checkEncryptionKey(config);
    const looked = (async () => {
      database = openDatabase(config.database, { poolSize: 4, name: 'gateway-doctor' });
      return checkDatabase(database, config);
    })().catch((error: unknown) => ({ finding: failedBy('database', error), facts: undefined }));
    type Facts = NonNullable<Awaited<typeof looked>['facts']>;
    /** A check that needs Postgres. */
    const onDatabase = <Found>(check: string, work: (database: Database, facts: Facts) => Found | Promise<Found>) =>
      bound<Found | Finding>(check, async () => {
        const { facts } = await looked;
        return database && facts ? work(database, facts) : skipped(check, 'because of the database');
      });
    const migrations = onDatabase('migrations', checkMigrations);
    const onTables = <Found>(check: string, work: (database: Database) => Found | Promise<Found>) =>
      onDatabase<Found | Finding>(check, async (open) =>
        (await migrations).state === 'ok' ? work(open) : skipped(check, 'because of the migrations'),
      );
    const sources = onTables('sources', (open) => {
      if (key.state !== 'ok') return skipped('sources', 'because of the encryption key, which their secrets are sealed with');
      return openSources(open, { resolved, discovery, signal: deadline.signal });
    }).then((found) => ('state' in found ? [found] : Promise.all(found.map(({ check, ask }) => bound(check, ask)))));

    const findings: readonly (readonly Finding[] | Promise<Finding | readonly Finding[]>)[] = [
      [key, checkLicence(config)],
      bound('database', async () => (await looked).finding),
      migrations,
      onDatabase('clock', (_database, facts) => checkClock(facts)),
      onTables('agents', checkAgents),
      bound('kv', () => checkKv(config)),
      checkPlugins(checked, resolved),
      sources,
      ...placesOf(config).map((place) => bound(place.check, () => checkPort(place))),
      bound('sandbox', () => checkSandbox(config)),
      [checkOpenFiles()],
      bound('smtp', () => checkSmtp(config, smtpTo)),
      bound('proxy', () => checkProxy(config, deadline.signal)),
    ];
    for (const found of findings) yield* [await found].flat();
  } finally {
    deadline.clear();
    // Whatever still waits for Postgres is not waited for.
    void database?.close().catch(() => undefined);
  }
}
