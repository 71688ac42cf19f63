import { spawnSync } from 'node:child_process';
import fs from 'node:fs';
import path from 'node:path';
import * as assert from 'uvu/assert';
import { runGateway, type GatewayProcess } from '../../support/gateway.js';
import { alive, processes } from '../../support/processes.js';
import { tempFolder } from '../../support/start/keep.js';
import { until } from '../../support/until.js';

export interface Memory {
  api_key: string;
  project_id: string;
  source_id: string;
  endpoint_id: string;
  postgres_home?: string;
}

/** A folder to run in. It is open to pass through: run by root, Postgres runs as another user. */
export function workFolder(): string {
  const folder = tempFolder('dev');
  fs.chmodSync(folder, 0o755);
  return folder;
}

let first: Promise<{ folder: string; ending: Awaited<ReturnType<typeof runGateway>> }> | undefined;

/** The first start in a folder, which makes everything. Nobody changes that folder. */
export function firstStart(): NonNullable<typeof first> {
  first ??= (async (folder) => ({
    folder,
    ending: await runGateway(['dev', '--once'], { folder }),
  }))(workFolder());
  return first;
}

/**
 * Returns a folder in which it has run once. It is a copy: most of a first start is spent on making
 * the database.
 */
export async function usedFolder(): Promise<string> {
  const folder = workFolder();
  const { folder: origin } = await firstStart();
  // Not by fs.cp: Postgres wants to be the owner of its files.
  const { status, stderr } = spawnSync('cp', ['-a', path.join(origin, '.gateway'), folder], {
    encoding: 'utf8',
  });
  assert.is(status, 0, stderr);
  return folder;
}

export const state = (folder: string, name: string) => path.join(folder, '.gateway', name);
export const memory = (folder: string) =>
  JSON.parse(fs.readFileSync(state(folder, 'dev.json'), 'utf8')) as Memory;

export async function followed(running: GatewayProcess): Promise<GatewayProcess> {
  await running.line('Ctrl-C stops', { withinMs: 60_000 });
  return running;
}

/** The management API of a running instance, below its project. */
export async function api<T>(
  running: GatewayProcess,
  method: string,
  route: string,
  body?: object,
): Promise<T> {
  const { api_key: key, project_id: project } = memory(running.folder);
  const [, url] = /API\s+(http\S+)/.exec(running.stdout) ?? [];
  const answer = await fetch(`${url}/projects/${project}${route}`, {
    method,
    headers: { authorization: `Bearer ${key}`, 'content-type': 'application/json' },
    ...(body ? { body: JSON.stringify(body) } : {}),
  });
  assert.ok(answer.ok, `${method} ${route} answered ${answer.status}`);
  return ((await answer.json()) as { data: T }).data;
}

/** Runs the shown command for another message. Without curl, sends what it would send. */
export async function sendAnother(running: GatewayProcess): Promise<void> {
  const [command] = /^ {2}curl .*$/m.exec(running.stdout) ?? [];
  assert.ok(command, running.stdout);
  const typed = spawnSync('sh', ['-c', command], { encoding: 'utf8' });
  if (typed.status !== 127) {
    assert.is(typed.status, 0, typed.stderr);
    assert.match(typed.stdout, '<MessageId>');
    return;
  }
  const [, url = '', queue = '', message = ''] =
    /curl (\S+) .*QueueUrl=(\S+) .*'MessageBody=(.*)'/.exec(command) ?? [];
  const answer = await fetch(url, {
    method: 'POST',
    body: new URLSearchParams({ Action: 'SendMessage', QueueUrl: queue, MessageBody: message }),
  });
  assert.is(answer.status, 200);
}

export const childrenOf = (pid: number) =>
  [...processes()].flatMap(([child, { parent }]) => (parent === pid ? [child] : []));

export const gone = (pids: readonly number[]) =>
  until('its children to be gone', () => !pids.some(alive));
