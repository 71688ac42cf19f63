import pg from 'pg';

/** Creates an empty database on all nodes of a Citus cluster. */
export async function createCitusDatabase(coordinator: string, name: string): Promise<void> {
  const nodes = await nodesOf(coordinator);
  for (const node of nodes) {
    await run(urlOf(node, 'postgres'), `create database ${name}`);
    await run(urlOf(node, name), 'create extension citus');
  }
  const [first, ...workers] = nodes as [Node, ...Node[]];
  const alone = new pg.Client({ connectionString: coordinator });
  await alone.connect();
  try {
    // Adding a node writes the roles, which all databases share; two at once fail.
    await alone.query(`select pg_advisory_lock(hashtext('add nodes'))`);
    await run(
      urlOf(first, name),
      `select citus_set_coordinator_host('${first.host}', ${first.port})`,
      ...workers.map(({ host, port }) => `select citus_add_node('${host}', ${port})`),
    );
  } finally {
    await alone.end();
  }
}

/** Drops the database on all nodes, the coordinator first. */
export async function dropCitusDatabase(coordinator: string, name: string): Promise<void> {
  for (const node of await nodesOf(coordinator))
    await run(urlOf(node, 'postgres'), `drop database if exists ${name} with (force)`);
}

interface Node {
  readonly host: string;
  readonly port: number;
}

/** Returns the coordinator, then the workers. */
function nodesOf(coordinator: string): Promise<Node[]> {
  return run<Node>(
    coordinator,
    'select nodename as host, nodeport as port from pg_dist_node order by groupid',
  );
}

function urlOf({ host, port }: Node, database: string): string {
  return `postgres://postgres@${host}:${port}/${database}`;
}

/** Runs statements in order and returns the rows of the last one. */
async function run<Row extends pg.QueryResultRow>(
  url: string,
  ...statements: readonly string[]
): Promise<Row[]> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    let rows: Row[] = [];
    for (const statement of statements) ({ rows } = await client.query<Row>(statement));
    return rows;
  } finally {
    await client.end();
  }
}
