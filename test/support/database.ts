import crypto from 'node:crypto';
import fs from 'node:fs';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import pg from 'pg';
import { createCitusDatabase, dropCitusDatabase } from './citus-database.js';
import { watchStatements } from './planes.js';
import { services } from './services.js';
import { until } from './until.js';

watchStatements();

const migrations = fileURLToPath(new URL('../../migrations', import.meta.url));

export interface Database {
  readonly url: string;
  /** The fields of `url` for the settings `db.*`. */
  readonly connection: {
    readonly host: string;
    readonly port: number;
    readonly username: string;
    readonly database: string;
  };
  rows<Row extends pg.QueryResultRow = pg.QueryResultRow>(
    sql: string,
    values?: readonly unknown[],
  ): Promise<Row[]>;
  /**
   * Drops the database. Throws if a connection to it is still open after five seconds: the tested
   * code leaks it.
   */
  close(): Promise<void>;
}

/** Whether each database of the test has both planes on the Citus cluster. */
export const isOnCitus = process.env['TEST_DATABASE'] === 'citus';

/** Parses the settings `database.*` from a URL. */
export function connectionOf(url: string): Database['connection'] {
  const { hostname, port, username, pathname } = new URL(url);
  return { host: hostname, port: Number(port), username, database: pathname.slice(1) };
}

/**
 * Creates a database in the shared Postgres, empty or cloned from a template that `migrate` has
 * filled, or an empty one on the Citus cluster, which has no templates.
 * @param options.migrate migrates the empty database at a URL; runs once per content of
 * `/migrations` for all test files of a run
 * @param options.postgres another server
 * @param options.citus whether it is on the Citus cluster
 * @param options.schema the schema with the tables that `rows` names
 */
export async function database(
  options: {
    migrate?: (url: string) => Promise<unknown>;
    postgres?: { readonly url: string };
    citus?: boolean;
    schema?: string;
  } = {},
): Promise<Database> {
  const name = `test_${crypto.randomBytes(8).toString('hex')}`;
  const isHere = options.citus ?? (isOnCitus && !options.postgres);
  const server = options.postgres ?? (await (isHere ? services.citus() : services.postgres()));
  const maintenance = server.url;
  const url = databaseUrl(maintenance, name);
  if (isHere) {
    await createCitusDatabase(maintenance, name);
    await options.migrate?.(url);
  } else {
    const template = options.migrate ? await migrated(maintenance, options.migrate) : 'template0';
    await withClient(maintenance, (admin) =>
      admin.query(`create database ${name} template ${template}`),
    );
  }
  let client: Promise<pg.Client> | undefined;
  return {
    url,
    connection: connectionOf(url),
    rows: async <Row extends pg.QueryResultRow>(sql: string, values: readonly unknown[] = []) => {
      client ??= connect(url, options.schema).then((connected) => {
        // The server was stopped; the next statement reconnects.
        connected.once('end', () => (client = undefined));
        return connected;
      });
      client.catch(() => (client = undefined));
      return (await (await client).query<Row>(sql, [...values])).rows;
    },
    close: async () => {
      await client?.then((connected) => connected.end());
      await withClient(maintenance, async (admin) => {
        const open = () => connections(admin, name);
        try {
          await until(
            `all connections to the database to be closed`,
            async () => (await open()).length === 0,
            { withinMs: 5_000 },
          );
        } catch (error) {
          throw new Error(`still connected to the database: ${(await open()).join(', ')}`, {
            cause: error,
          });
        } finally {
          if (isHere) await dropCitusDatabase(maintenance, name);
          else await admin.query(`drop database if exists ${name} with (force)`);
        }
      });
    },
  };
}

/**
 * Returns the name of a migrated template, and creates it if it does not exist; other processes
 * wait on the advisory lock. There is one template per day: a migration creates tables for the
 * coming days, and tests can run past midnight.
 */
async function migrated(
  maintenance: string,
  migrate: (url: string) => Promise<unknown>,
): Promise<string> {
  const name = `template_${hash(migrate)}_${new Date().toISOString().slice(0, 10).replaceAll('-', '')}`;
  await withClient(maintenance, async (client) => {
    await client.query('select pg_advisory_lock(hashtext($1))', [name]);
    const { rowCount } = await client.query('select from pg_database where datname = $1', [name]);
    if (rowCount) return;
    const filling = `${name}_filling`;
    await client.query(`drop database if exists ${filling} with (force)`);
    await client.query(`create database ${filling} template template0`);
    await migrate(databaseUrl(maintenance, filling));
    await until(
      'the migration to close its connections',
      async () => (await connections(client, filling)).length === 0,
    );
    await client.query(`alter database ${filling} rename to ${name}`);
  });
  return name;
}

function hash(migrate: (url: string) => Promise<unknown>): string {
  const hash = crypto.createHash('sha256').update(migrate.toString());
  for (const file of fs
    .readdirSync(migrations)
    .filter((name) => name.endsWith('.sql'))
    .sort())
    hash.update(file).update(fs.readFileSync(path.join(migrations, file)));
  return hash.digest('hex').slice(0, 16);
}

async function connections(client: pg.Client, database: string): Promise<string[]> {
  const { rows } = await client.query<{ who: string }>(
    `select coalesce(nullif(application_name, ''), 'somebody') || ' (' || left(query, 100) || ')' as who
     from pg_stat_activity where datname = $1 and backend_type = 'client backend'
       and application_name not like 'citus_internal%'`,
    [database],
  );
  return rows.map(({ who }) => who);
}

function databaseUrl(maintenance: string, name: string): string {
  const url = new URL(maintenance);
  url.pathname = `/${name}`;
  return url.href;
}

async function connect(url: string, schema?: string): Promise<pg.Client> {
  const client = new pg.Client({
    connectionString: url,
    application_name: 'test',
    ...(schema && { options: `-c search_path=${schema}` }),
  });
  client.on('error', () => undefined); // the server was stopped: the next query reports it
  await client.connect();
  return client;
}

async function withClient<T>(url: string, work: (client: pg.Client) => Promise<T>): Promise<T> {
  const client = await connect(url);
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
