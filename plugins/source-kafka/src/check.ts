import { PluginError, settles, type CheckContext } from '@gateway/plugin';
import type { Admin } from 'kafkajs';
import { openClient } from './client.js';
import type { Connection } from './connection.js';
import { limit } from './deadline.js';
import { explain } from './explain.js';
import { silent } from './log.js';

/** The contract gives ten seconds; the rest is for closing. */
const DEADLINE_MS = 8_500;
const CLOSE_DEADLINE_MS = 1_000;

/** Connects, looks for the topic and asks for the consumer group if it has a name already, and disconnects. Throws a `PluginError`. */
export async function check(connection: Connection, context: CheckContext): Promise<void> {
  const client = openClient(connection, { clientId: 'gateway-check', retries: 2, logTo: silent });
  const admin = client.kafka.admin();
  const deadline = limit(
    context.signal,
    DEADLINE_MS,
    new PluginError(`${connection.brokers.join(', ')} did not answer within ${DEADLINE_MS / 1000} seconds.`, {
      fix: 'Check brokers, and that a firewall lets this machine reach them and the addresses that they advertise.',
    }),
  );
  try {
    const looked = look(admin, connection);
    looked.catch(() => {});
    await Promise.race([looked, deadline.reached]);
  } catch (error) {
    throw error === context.signal.reason ? error : explain(error, connection, connection.consumer_group_id);
  } finally {
    deadline.cancel();
    await settles(admin.disconnect(), CLOSE_DEADLINE_MS);
    client.destroy();
  }
}

async function look(admin: Admin, connection: Connection): Promise<void> {
  await admin.connect();
  // Listing is the one question about topics that never creates one, whatever auto.create.topics.enable says.
  if (!(await admin.listTopics()).includes(connection.topic_name)) {
    const who = connection.auth?.username === undefined ? 'an anonymous user' : `the user "${connection.auth.username}"`;
    throw new PluginError(`There is no topic "${connection.topic_name}" on ${connection.brokers.join(', ')} that ${who} may see.`, {
      fix: 'Check topic_name; create the topic; or give the user Describe and Read on it.',
    });
  }
  await admin.fetchTopicOffsets(connection.topic_name);
  // An empty id becomes one made of the id of the source, which is not known before the source is saved.
  if (connection.consumer_group_id) await admin.describeGroups([connection.consumer_group_id]);
}
