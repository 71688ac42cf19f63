// @ts-check
// The baseline for posts: Koa that parses the JSON and commits the same row, one commit per
// request. DATABASE_URL names a migrated database, PROJECT the project.
import { randomUUID } from 'node:crypto';
import Koa from 'koa';
import pg from 'pg';

const pool = new pg.Pool({ connectionString: process.env['DATABASE_URL'], max: 20 });
const app = new Koa();
app.use(async (ctx) => {
  let text = '';
  for await (const chunk of ctx.req.setEncoding('utf8')) text += chunk;
  const { event_type: type, data } = JSON.parse(text);
  const id = randomUUID();
  await pool.query({
    name: 'insert',
    text: `insert into events (project_id, id, occurred_at, coordinates, event_type, status, headers, data) values ($1, $2, now(), 'api', $3, 'pending', '{}', $4)`,
    values: [process.env['PROJECT'], id, type, JSON.stringify(data)],
  });
  ctx.status = 201;
  ctx.body = { status: true, message: 'event created', data: { uid: id } };
});
const server = app.listen(0, '127.0.0.1', () => {
  const address = server.address();
  process.send?.({ port: typeof address === 'object' ? address?.port : undefined });
});
process.on('disconnect', () => process.exit(0));
