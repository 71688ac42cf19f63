import { whenAborted, type Handle, type SourceContext, type SourcePlugin } from '@gateway/plugin';
import { check } from './check.js';
import { groupOf, type Connection } from './connection.js';
import { evictDeadMembers } from './evict-dead-members.js';
import { explain } from './explain.js';
import { GroupMember } from './group-member.js';
import { reportLag } from './lag.js';

export type { Auth, Connection } from './connection.js';

const plugin: SourcePlugin<Connection> = { check, run };

export default plugin;

/** Reads the topic with `context.workers` members of the consumer group until the signal aborts; rejects with a `PluginError` when one of them fails. */
async function run(connection: Connection, handle: Handle, context: SourceContext): Promise<void> {
  context.report('connecting');
  const members: GroupMember[] = [];
  const stopLag = reportLag(connection, context, () => members.flatMap(({ readers }) => [...readers]));
  const aborted = whenAborted(context.signal);
  try {
    await Promise.race([evictDeadMembers(connection, context), aborted]);
    for (let at = 1; at <= context.workers; at++) {
      const clientId = context.workers === 1 ? context.clientId : `${context.clientId}-${at}`;
      members.push(new GroupMember(connection, handle, context, clientId));
    }
    const started = Promise.all(members.map((member) => member.start())).then(() => {
      if (!context.signal.aborted) context.report('reading');
      return aborted;
    });
    started.catch(() => {});
    await Promise.race([started, aborted, ...members.map((member) => member.failed)]);
    await Promise.all(members.map((member) => member.drain()));
  } catch (error) {
    const explained = explain(error, connection, groupOf(connection, context.sourceId));
    context.report('failing', `${explained.message} ${explained.fix}`);
    throw explained;
  } finally {
    await Promise.all([...members.map((member) => member.close()), stopLag()]);
  }
}
