import { PluginError, settles, whenAborted, type CheckContext } from '@gateway/plugin';
import type { Admin } from 'kafkajs';
import { openClient, silent } from './client.js';
import type { Connection } from './connection.js';
import { explain } from './explain.js';

/** The contract allows ten seconds; the rest is for closing. */
const DEADLINE_MS = 8_500;
const CLOSE_DEADLINE_MS = 1_000;

/** Connects, looks up the topic and, if it has a name already, the consumer group, and disconnects. Throws a `PluginError`. */
export async function check(connection: Connection, context: CheckContext): Promise<void> {
  const client = openClient(connection, { clientId: 'gateway-check', retries: 2, logTo: silent });
  const admin = client.kafka.admin();
  const signal = AbortSignal.any([context.signal, AbortSignal.timeout(DEADLINE_MS)]);
  try {
    const found = lookUp(admin, connection);
    found.catch(() => {});
    await Promise.race([found, whenAborted(signal)]);
    signal.throwIfAborted();
  } catch (error) {
    context.signal.throwIfAborted();
    if (!signal.aborted) throw explain(error, connection, connection.consumer_group_id);
    throw new PluginError(`${connection.brokers.join(', ')} did not answer within ${DEADLINE_MS / 1000} seconds.`, {
      fix: 'Check brokers, and that a firewall lets this machine reach them and the addresses that they advertise.',
    });
  } finally {
    await settles(admin.disconnect(), CLOSE_DEADLINE_MS);
    client.destroy();
  }
}

async function lookUp(admin: Admin, connection: Connection): Promise<void> {
  await admin.connect();
  // Listing is the only request about topics that never creates one, whatever auto.create.topics.enable says.
  if (!(await admin.listTopics()).includes(connection.topic_name)) {
    const who = connection.auth?.username === undefined ? 'an anonymous user' : `the user "${connection.auth.username}"`;
    throw new PluginError(`There is no topic "${connection.topic_name}" on ${connection.brokers.join(', ')} that ${who} may see.`, {
      fix: 'Check topic_name; create the topic; or give the user Describe and Read on it.',
    });
  }
  await admin.fetchTopicOffsets(connection.topic_name);
  // An empty id is replaced by one made of the id of the source, which is unknown before the source is saved.
  if (connection.consumer_group_id) await admin.describeGroups([connection.consumer_group_id]);
}
