import { settles, type SourceContext } from '@gateway/plugin';
import type { Kafka } from 'kafkajs';
import { openClient } from './client.js';
import { groupOf, type Connection } from './connection.js';
import { silent } from './log.js';

const DEADLINE_MS = 2_000;
const CLOSE_MS = 500;

/** What of kafkajs 2.2.4, which is exactly what this package depends on, can take a member out of its group: its admin cannot. */
interface Cluster {
  connect(): Promise<void>;
  findGroupCoordinator(of: { groupId: string }): Promise<Coordinator>;
  disconnect(): Promise<void>;
}

interface Coordinator {
  describeGroups(of: { groupIds: string[] }): Promise<{ groups: { members: { memberId: string; clientId: string }[] }[] }>;
  leaveGroup(of: { groupId: string; memberId: string }): Promise<unknown>;
}

/**
 * Takes members out of the group that were killed on this machine: the group would wait for them until their sessions end, and a single agent that starts
 * again would read nothing meanwhile. Where that is not possible, it is what happens. A member that is taken for dead and lives joins again at once, and
 * joining is what everybody does anyway when this one comes. Never rejects.
 */
export async function retirePredecessors(connection: Connection, context: SourceContext): Promise<void> {
  const client = openClient(connection, { clientId: `${context.clientId}-start`, retries: 1, logTo: silent });
  const cluster = clusterOf(client.kafka);
  if (cluster) {
    const retiring = retire(cluster, groupOf(connection, context.sourceId), context);
    retiring.catch((error: unknown) => context.log.debug({ error }, 'the group did not tell of members that were killed'));
    await settles(retiring, DEADLINE_MS);
    await settles(cluster.disconnect(), CLOSE_MS);
  }
  client.destroy();
}

async function retire(cluster: Cluster, groupId: string, context: SourceContext): Promise<void> {
  await cluster.connect();
  const coordinator = await cluster.findGroupCoordinator({ groupId });
  const { groups } = await coordinator.describeGroups({ groupIds: [groupId] });
  for (const { memberId, clientId } of groups.flatMap(({ members }) => members)) {
    if (!isPredecessor(clientId, context.clientId)) continue;
    await coordinator.leaveGroup({ groupId, memberId });
    context.log.info({ group: groupId, member: memberId }, 'a member of a process that was killed was taken out of the group');
  }
}

/**
 * Whether a client id is that of a process which has ended: of an earlier run in this process or one of the same id (in containers it is), or
 * of another process id that nobody has now. Client ids of this machine differ in the process id and the number of the worker alone.
 */
export function isPredecessor(clientId: string, own: string, isAlive: (pid: number) => boolean = isProcess): boolean {
  const [, theirs = ''] = /^(.+?)(?:-\d{1,3})?$/.exec(clientId) ?? [];
  if (clientId === own || theirs === own) return true;
  const at = own.lastIndexOf(`-${process.pid}-`);
  if (at < 0) return false;
  const [head, tail] = [own.slice(0, at + 1), own.slice(at + `-${process.pid}`.length)];
  for (const id of [clientId, theirs]) {
    if (!id.startsWith(head) || !id.endsWith(tail) || id.length <= head.length + tail.length) continue;
    const pid = id.slice(head.length, -tail.length);
    if (/^\d+$/.test(pid) && Number(pid) !== process.pid) return !isAlive(Number(pid));
  }
  return false;
}

function isProcess(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    // Of another user, it may not be asked.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}

function clusterOf(kafka: Kafka): Cluster | undefined {
  const create = Object.getOwnPropertySymbols(kafka).find(({ description }) => description === 'private:Kafka:createCluster');
  const of = kafka as unknown as Record<symbol, ((options: { allowAutoTopicCreation: boolean }) => Cluster) | undefined>;
  return create && of[create]?.({ allowAutoTopicCreation: false });
}
