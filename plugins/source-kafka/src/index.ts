import { PluginError, settles, whenAborted, type CheckContext, type Handle, type SourceContext, type SourcePlugin } from '@gateway/plugin';
import type { Admin } from 'kafkajs';
import { openClient, silent } from './client.js';
import { groupOf, type Connection } from './connection.js';
import { evictDeadMembers } from './evict-dead-members.js';
import { explain, userOf } from './explain.js';
import { GroupMember } from './group-member.js';
import { SourceMemory } from './memory.js';
import { offsetsReset } from './offsets-reset.js';
import { watch } from './watch.js';

export type { Auth, Connection } from './connection.js';

const plugin: SourcePlugin<Connection> = { check, run, watch };

export default plugin;

/** The contract allows ten seconds; the rest is for closing. */
const CHECK_MS = 8_500;
const CHECK_CLOSE_MS = 1_000;

/** Connects, looks up the topic and, if it has a name already, the consumer group, and disconnects. Throws a `PluginError`. */
async function check(connection: Connection, context: CheckContext): Promise<void> {
  const client = openClient(connection, { clientId: 'gateway-check', retries: 2, logTo: silent });
  const admin = client.kafka.admin();
  const signal = AbortSignal.any([context.signal, AbortSignal.timeout(CHECK_MS)]);
  try {
    const found = lookUp(admin, connection);
    found.catch(() => {});
    await Promise.race([found, whenAborted(signal)]);
    signal.throwIfAborted();
  } catch (error) {
    context.signal.throwIfAborted();
    if (!signal.aborted) throw explain(error, connection, connection.consumer_group_id);
    throw new PluginError(`${connection.brokers.join(', ')} did not answer within ${CHECK_MS / 1000} seconds.`, {
      fix: 'Check brokers, and that a firewall lets this machine reach them and the addresses that they advertise.',
    });
  } finally {
    await settles(admin.disconnect(), CHECK_CLOSE_MS);
    client.destroy();
  }
}

async function lookUp(admin: Admin, connection: Connection): Promise<void> {
  await admin.connect();
  // Listing is the only request about topics that never creates one, whatever auto.create.topics.enable says.
  if (!(await admin.listTopics()).includes(connection.topic_name)) {
    const who = userOf(connection.auth ?? {});
    throw new PluginError(`There is no topic "${connection.topic_name}" on ${connection.brokers.join(', ')} that ${who} may see.`, {
      fix: 'Check topic_name; create the topic; or give the user Describe and Read on it.',
    });
  }
  await admin.fetchTopicOffsets(connection.topic_name);
  // An empty id is replaced by one made of the id of the source, which is unknown before the source is saved.
  if (connection.consumer_group_id) await admin.describeGroups([connection.consumer_group_id]);
}

/** Reads the topic with `context.workers` members of the consumer group until the signal aborts; rejects with a `PluginError` when one of them fails. */
async function run(connection: Connection, handle: Handle, context: SourceContext): Promise<void> {
  context.report('connecting');
  const members: GroupMember[] = [];
  const memory = new SourceMemory();
  const aborted = whenAborted(context.signal);
  const ended = new AbortController();
  let reset = Promise.resolve();
  try {
    await Promise.race([evictDeadMembers(connection, context), aborted]);
    for (let at = 1; at <= context.workers; at++) {
      const clientId = context.workers === 1 ? context.clientId : `${context.clientId}-${at}`;
      members.push(new GroupMember(connection, handle, context, clientId, memory));
    }
    const started = Promise.all(members.map((member) => member.start())).then(() => {
      if (!context.signal.aborted) context.report('reading');
      return aborted;
    });
    started.catch(() => {});
    reset = offsetsReset(connection, context, AbortSignal.any([context.signal, ended.signal]));
    reset.catch(() => {});
    await Promise.race([started, aborted, reset, ...members.map((member) => member.failed)]);
    await Promise.all(members.map((member) => member.drain()));
  } catch (error) {
    const explained = explain(error, connection, groupOf(connection, context.sourceId));
    context.report('failing', `${explained.message} ${explained.fix}`);
    throw explained;
  } finally {
    ended.abort();
    await Promise.all([...members.map((member) => member.close()), settles(reset, CHECK_CLOSE_MS)]);
  }
}
