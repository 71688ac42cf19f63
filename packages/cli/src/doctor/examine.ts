import { sealer } from '@gateway/core/crypto';
import { explainDatabaseError } from '@gateway/core/errors';
import { withTimeout } from '@gateway/core/process';
import {
  openDatabase,
  readDatabaseFacts,
  requireMigrated,
  requireSessions,
  type Database,
} from '@gateway/store/postgres';
import { Shards } from '@gateway/store/shards';
import {
  failedBy,
  ok,
  skipped,
  type DoctorCheck,
  type DoctorContext,
  type Examined,
  type DoctorFinding,
} from './finding.js';
import {
  checkEncryptionKey,
  checkLicence,
  checkOpenFiles,
  checkPlugins,
  checkProxy,
  checkSandbox,
  checkSettings,
  checkSignIn,
  checkSmtp,
} from './machine.js';
import { checkProjects, checkSources } from './projects.js';
import {
  checkAgents,
  checkArchive,
  checkClock,
  checkDatabase,
  checkKv,
  checkPartitions,
  checkReplicas,
  checkShards,
} from './stores.js';

const DEADLINE_MS = 10_000;
const NAME = 'gateway-doctor';

const noDatabase = () => skipped('because of the database');

/** Skipped without a reachable, migrated database. */
function onTables(
  work: (database: Database, context: DoctorContext) => ReturnType<DoctorCheck[1]>,
): DoctorCheck[1] {
  return (context) => {
    const { reached, migrated } = context;
    const withTables = () =>
      migrated.then(
        (database) => work(database, context),
        () => skipped('because of the migrations'),
      );
    return reached.then(withTables, noDatabase);
  };
}

/** In report order. */
const checks = [
  ['encryption key', checkEncryptionKey],
  ['licence', checkLicence],
  ['database', checkDatabase],
  [
    'migrations',
    ({ reached, migrated }) =>
      reached.then(() => migrated.then(() => ok('all applied')), noDatabase),
  ],
  ['clock', ({ reached }) => reached.then(checkClock, noDatabase)],
  ['agents', onTables(checkAgents)],
  ['partitions', onTables(checkPartitions)],
  ['replicas', onTables(checkReplicas)],
  ['shards', onTables((_, context) => checkShards(context))],
  ['kv', checkKv],
  ['archive', checkArchive],
  ['plugins', checkPlugins],
  ['sources', onTables(checkSources)],
  ['projects', onTables(checkProjects)],
  ['sandbox', checkSandbox],
  ['open files', checkOpenFiles],
  ['smtp', checkSmtp],
  ['proxy', checkProxy],
  ['sign-in', checkSignIn],
] as const satisfies readonly DoctorCheck[];

export type CheckName = (typeof checks)[number][0];

/**
 * Checks run concurrently; those that depend on a failed check are skipped. Changes nothing except
 * a file in the archive.
 *
 * @returns findings in the order of the checks, as soon as they are known
 */
export async function* examine(
  given: Examined,
  { withinMs = DEADLINE_MS, only }: { withinMs?: number; only?: readonly CheckName[] } = {},
): AsyncGenerator<DoctorFinding> {
  const { checked, resolved } = given;
  if (!only) yield { check: 'settings', ...checkSettings(checked, resolved === undefined) };
  if (!resolved) {
    for (const [check] of checks) yield { check, ...skipped('because the settings are wrong') };
    return;
  }
  const { config } = resolved;
  const endsAt = Date.now() + withinMs;
  const inTime = <Found>(work: () => Found | Promise<Found>): Promise<Found> =>
    withTimeout(
      (async () => work())(),
      endsAt - Date.now(),
      `no answer within ${withinMs / 1000} s`,
    );
  let database: Database | undefined;
  const reached = inTime(async () => {
    database = openDatabase(config.database, { poolSize: 4, name: NAME });
    await requireSessions(database, config.database);
    return readDatabaseFacts(database.pool);
  }).catch((error: unknown) => {
    throw explainDatabaseError(error, config.database);
  });
  const migrated = reached.then(() =>
    inTime(async () => (await requireMigrated(database!), database!)),
  );
  let opened: Shards | undefined;
  const shards = migrated.then((control) =>
    inTime(async () => {
      const { open } = sealer(config.encryption_key);
      opened = new Shards(control, { settings: config.database, open, poolSize: 2, name: NAME });
      await opened.refresh();
      return opened;
    }),
  );
  for (const it of [migrated, shards]) it.catch(() => undefined);
  // Fires after a check's own time limit, whose error is more specific.
  const signal = AbortSignal.timeout(withinMs + 100);
  const context: DoctorContext = { ...given, resolved, config, signal, reached, migrated, shards };

  const run = async ([check, work]: DoctorCheck): Promise<DoctorFinding[]> => {
    const found = await inTime(() => work(context)).catch((error: NodeJS.ErrnoException) =>
      failedBy(
        error,
        error.code === 'ETIMEDOUT'
          ? 'check that it runs and that no firewall blocks this machine'
          : undefined,
      ),
    );
    return 'state' in found ? [{ check, ...found }] : (await Promise.all(found.map(run))).flat();
  };
  try {
    const wanted = checks.filter(([check]) => only?.includes(check) ?? true);
    for (const found of wanted.map(run)) yield* await found;
  } finally {
    // Not awaited, because closing waits for running statements.
    void opened?.close().catch(() => undefined);
    void database?.close().catch(() => undefined);
  }
}
