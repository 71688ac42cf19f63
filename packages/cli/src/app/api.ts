import type { GatewayClient, Pages, Project } from '@gateway/client';
import type { Config } from '@gateway/core/config';
import { GatewayError, networkReason } from '@gateway/core/errors';
import type { Log } from '@gateway/core/logging';
import { withDatabase } from './stores.js';

export const READS = { atOnce: 8 };
/** The API allows no larger page. */
const PER_PAGE = 200;
/** A request works for up to 10 s, and longer while a shard is added or a project moves. */
const REMOTE_MS = 60_000;
const LOCAL_MS = 3_600_000;
const POOL_SIZE = 4;

/**
 * The client talks to the server at `client.url` or, without it, to the routes in this process, on
 * the database of the settings.
 *
 * @param warn prints what the routes in this process log for their operator
 */
export async function withApi<T>(
  config: Config,
  work: (api: GatewayClient) => Promise<T>,
  warn: (line: string) => void,
): Promise<T> {
  const { GatewayClient } = await import('@gateway/client');
  const { url, key } = config.client;
  if (url !== undefined) {
    const reason = 'client.key is not set';
    if (key === undefined) throw new GatewayError('server_refused', { url, reason });
    const api = new GatewayClient({ url, key, timeoutMs: REMOTE_MS });
    return work(api).catch((error: unknown) => {
      throw explained(error, url);
    });
  }
  const run: Parameters<typeof withDatabase<T>>[1] = async (database) => {
    const [{ openLocalApi }, { silentLog }] = await Promise.all([
      import('@gateway/server/local'),
      import('@gateway/core/logging'),
    ]);
    const log = { ...silentLog, ...warningsTo(warn) };
    const { fetch, close } = await openLocalApi({ config, database, log });
    try {
      const place = { url: 'http://gateway', key: 'operator' };
      return await work(new GatewayClient({ ...place, fetch, retries: 0, timeoutMs: LOCAL_MS }));
    } catch (error) {
      throw explained(error);
    } finally {
      await close();
    }
  };
  return withDatabase(config, run, { poolSize: POOL_SIZE });
}

function warningsTo(warn: (line: string) => void): Pick<Log, 'warn' | 'error'> {
  const print = (fields: object, sentence: string) => {
    const { reason, error } = fields as { readonly reason?: string; readonly error?: Error };
    warn(`warning: ${[sentence, reason ?? error?.message].filter(Boolean).join(' ')}`);
  };
  return { warn: print, error: print };
}

/**
 * The fix is a line of its own. Explains an error of a server that is unavailable, is not a
 * gateway, or rejects the key.
 */
function explained(error: unknown, url = ''): unknown {
  const { code, fix, name, message } = error as Error & { code?: string; fix?: string };
  if (name === 'GatewayApiError' && code !== 'unexpected_answer') {
    const reason = message.replace(` (${fix})`, '');
    const [, missing] = /^(path \/.*) not found$/.exec(reason) ?? [];
    if (missing !== undefined) {
      const older = `it has no ${missing}, so it may be older than this command`;
      return new GatewayError('server_unreachable', { url, reason: older }, { cause: error });
    }
    return code === 'unauthorized'
      ? new GatewayError('server_refused', { url, reason }, { cause: error })
      : Object.assign(new Error(reason, { cause: error }), { code, fix });
  }
  const reason =
    code === 'unexpected_answer'
      ? 'something else than a gateway answers'
      : name === 'TimeoutError'
        ? `no answer in ${REMOTE_MS / 1000} s`
        : url && networkReason(error);
  return reason ? new GatewayError('server_unreachable', { url, reason }, { cause: error }) : error;
}

/** The flags of a command that selects projects. */
interface OfProject {
  readonly 'project-id'?: string | undefined;
}

/** Without an id, all that the key reaches. */
export async function projectsOf(
  api: GatewayClient,
  { 'project-id': id }: OfProject,
): Promise<readonly Project[]> {
  if (id !== undefined) return [await api.projects.get(id)];
  const all: Project[] = [];
  for await (const project of api.projects.list({ perPage: PER_PAGE, sort: 'ASC' }))
    all.push(project);
  return all;
}

/**
 * Several projects at a time if `work` only reads. A failure in one does not stop the others.
 *
 * @throws the first failure, at the end
 */
export async function inEach(
  api: GatewayClient,
  projects: readonly Project[],
  work: (api: GatewayClient, project: Project) => Promise<void>,
  { atOnce = 1 } = {},
): Promise<void> {
  let failure: unknown;
  for (let at = 0; at < projects.length; at += atOnce) {
    const part = projects.slice(at, at + atOnce);
    const ended = await Promise.allSettled(part.map((it) => work(api.project(it.uid), it)));
    for (const one of ended) if (one.status === 'rejected') failure ??= one.reason;
  }
  if (failure) throw failure as Error;
}

/**
 * From the first project that has it, with a client of the project.
 *
 * @throws the error of a project that failed, or else that nothing was found
 */
export async function findIn<Found>(
  api: GatewayClient,
  flags: OfProject,
  find: (api: GatewayClient) => Promise<Found>,
): Promise<{ readonly api: GatewayClient; readonly project: Project; readonly found: Found }> {
  let missing: unknown = new GatewayError('not_found', { thing: 'project' });
  const projects = await projectsOf(api, flags);
  const results: { api: GatewayClient; project: Project; found: Found }[] = [];
  const search = async (of: GatewayClient, project: Project) => {
    if (results.length > 0) return;
    try {
      results.push({ api: of, project, found: await find(of) });
    } catch (error) {
      if ((error as { code?: string }).code !== 'not_found') throw error;
      missing = error;
    }
  };
  const failure: unknown = await inEach(api, projects, search, READS).catch(
    (error: unknown) => error,
  );
  const [result] = results;
  if (result) return result;
  throw failure ?? missing;
}

/** Fields have the names of commands. Shows rows also if a project failed. */
export async function showNewest<Row extends { readonly uid: string }>(
  api: GatewayClient,
  { limit, ...flags }: OfProject & { readonly limit: number },
  list: (api: GatewayClient, perPage: number) => Pages<Row>,
  show: (
    rows: readonly (Omit<Row, 'uid'> & { readonly id: string; readonly project_name: string })[],
    hasMore: boolean,
  ) => Promise<void> | void,
): Promise<void> {
  const found: Parameters<typeof show>[0][number][] = [];
  const read = async (of: GatewayClient, { name: project_name }: Project) => {
    let left = limit;
    for await (const { uid: id, ...row } of list(of, Math.min(PER_PAGE, limit + 1))) {
      found.push({ id, ...row, project_name });
      if (left-- === 0) return;
    }
  };
  const projects = await projectsOf(api, flags);
  const failure: unknown = await inEach(api, projects, read, READS).catch(
    (error: unknown) => error,
  );
  found.sort((a, b) => (a.id < b.id ? 1 : -1));
  if (!failure || found.length > 0) await show(found.slice(0, limit), found.length > limit);
  if (failure) throw failure as Error;
}
