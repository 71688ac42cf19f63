import type { Handle, SourceContext } from '@gateway/plugin';
import { groupOf, type Connection } from './connection.js';
import { explain } from './explain.js';
import { tellLag } from './lag.js';
import { Member } from './member.js';
import { retirePredecessors } from './predecessors.js';

/** Reads the topic with `context.workers` members of the consumer group until the signal aborts; rejects with a `PluginError` when one of them cannot go on. */
export async function run(connection: Connection, handle: Handle, context: SourceContext): Promise<void> {
  context.report('connecting');
  const members: Member[] = [];
  const forgetLag = tellLag(connection, context, () => members.flatMap(({ readers }) => [...readers]));
  const aborted = new Promise<void>((resolve) => {
    if (context.signal.aborted) resolve();
    else context.signal.addEventListener('abort', () => resolve(), { once: true });
  });
  try {
    await Promise.race([retirePredecessors(connection, context), aborted]);
    for (let at = 1; at <= context.workers; at++) {
      members.push(new Member(connection, handle, context, context.workers === 1 ? context.clientId : `${context.clientId}-${at}`));
    }
    const failed = Promise.race(members.map((member) => member.failed));
    const started = Promise.all(members.map((member) => member.start())).then(() => {
      if (!context.signal.aborted) context.report('reading');
      return aborted;
    });
    started.catch(() => {});
    await Promise.race([started, aborted, failed]);
    await Promise.all(members.map((member) => member.drain()));
  } catch (error) {
    const explained = explain(error, connection, groupOf(connection, context.sourceId));
    context.report('failing', `${explained.message} ${explained.fix}`);
    throw explained;
  } finally {
    await Promise.all([...members.map((member) => member.close()), forgetLag()]);
  }
}
