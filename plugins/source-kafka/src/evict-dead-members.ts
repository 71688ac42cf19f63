import type { SourceContext } from '@gateway/plugin';
import type { Cluster } from './client.js';

/**
 * Removes group members whose processes on this machine were killed; otherwise, a single restarting
 * agent would read nothing until their sessions time out. A live member removed by mistake rejoins
 * at once, as all do when a member joins. Never rejects: on failure, sessions time out.
 */
export async function evictDeadMembers(
  cluster: Cluster,
  group: string,
  context: SourceContext,
): Promise<void> {
  await evict(cluster, group, context).catch((error: unknown) =>
    context.log.debug({ error }, 'could not remove dead members from the group'),
  );
}

async function evict(cluster: Cluster, groupId: string, context: SourceContext): Promise<void> {
  const coordinator = await cluster.findGroupCoordinator({ groupId });
  const { groups } = await coordinator.describeGroups({ groupIds: [groupId] });
  for (const { memberId, clientId } of groups.flatMap(({ members }) => members)) {
    if (!isDead(clientId, context.clientId)) continue;
    await coordinator.leaveGroup({ groupId, memberId });
    context.log.info(
      { group: groupId, member: memberId },
      'removed the member of a killed process from the group',
    );
  }
}

/**
 * The client id belongs to an earlier process with this pid (as in containers), or to one whose pid
 * no process has. Client ids of this machine differ only in pid and worker number.
 */
export function isDead(
  clientId: string,
  own: string,
  isAlive: (pid: number) => boolean = isProcess,
): boolean {
  const [, withoutWorker = ''] = /^(.+?)(?:-\d{1,3})?$/.exec(clientId) ?? [];
  if (clientId === own || withoutWorker === own) return true;
  const at = own.lastIndexOf(`-${process.pid}-`);
  if (at < 0) return false;
  const [head, tail] = [own.slice(0, at + 1), own.slice(at + `-${process.pid}`.length)];
  for (const id of [clientId, withoutWorker]) {
    if (!id.startsWith(head) || !id.endsWith(tail) || id.length <= head.length + tail.length)
      continue;
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
    // `EPERM` means that the process exists but belongs to another user.
    return (error as NodeJS.ErrnoException).code === 'EPERM';
  }
}
