import { setTimeout as sleep } from 'node:timers/promises';
import {
  ErrorChain,
  PluginError,
  settles,
  whenAborted,
  type Advice,
  type CheckContext,
  type Handle,
  type SourceContext,
  type SourcePlugin,
} from '@gateway/plugin';
import type { Admin } from 'kafkajs';
import { currentTopicId, openClient, silent } from './client.js';
import { groupOf, mayLogIn, type Connection, type Settings } from './connection.js';
import { evictDeadMembers } from './evict-dead-members.js';
import { explain, idleMembers, userOf } from './explain.js';
import { GroupMember, type SharedByMembers } from './group-member.js';
import { SourceMemory } from './memory.js';
import { offsetsReset, watch } from './watch.js';

export type { Auth, Connection } from './connection.js';

const plugin: SourcePlugin<Connection, Settings> = {
  check,
  run,
  async watch(connection, context) {
    mayLogIn(connection, context.settings);
    await watch(connection, context);
  },
};

export default plugin;

/** Ten seconds by contract, less the time for closing connections. */
const CHECK_MS = 8_500;
const CHECK_CLOSE_MS = 1_000;
/** A check is repeated for this long if its error is normal while a cluster or topic is new. */
const STARTING_MS = 3_000;
const STARTING_EVERY_MS = 250;
const STARTING: readonly (string | RegExp)[] = [
  'BROKER_NOT_AVAILABLE',
  'LEADER_NOT_AVAILABLE',
  'NOT_LEADER_FOR_PARTITION',
  'UNKNOWN_TOPIC_OR_PARTITION',
  'GROUP_COORDINATOR_NOT_AVAILABLE',
  'GROUP_LOAD_IN_PROGRESS',
  'KafkaJSGroupCoordinatorNotFound',
  /^There is no topic/m,
];
/** For `check`. The metadata of a large cluster takes a few megabytes. */
const CHECK_ANSWER_MAX_BYTES = 16 * 1024 * 1024;

/**
 * For a leaving member to settle its messages, as in a rebalance. The rest are redelivered and
 * deduplicated.
 */
const LEAVE_MS = 5_000;
const JOIN_AT_ONCE = 16;

/**
 * Looks up the topic and the configured consumer group, for a few seconds if the cluster or the
 * topic may be new. Resolves with advice if members would be idle.
 * @throws PluginError if the topic cannot be read
 */
async function check(
  connection: Connection,
  context: CheckContext<Settings>,
): Promise<Advice | void> {
  mayLogIn(connection, context.settings);
  const client = openClient(connection, {
    clientId: 'gateway-check',
    retries: 2,
    logTo: silent,
    answerMaxBytes: CHECK_ANSWER_MAX_BYTES,
  });
  const admin = client.kafka.admin();
  const signal = AbortSignal.any([context.signal, AbortSignal.timeout(CHECK_MS)]);
  try {
    const found = lookUpOnceStarted(admin, connection, signal);
    found.catch(() => {});
    const partitions = await Promise.race([found, whenAborted(signal)]);
    signal.throwIfAborted();
    return idleMembers(connection.topic_name, partitions ?? 0, context.workers);
  } catch (error) {
    context.signal.throwIfAborted();
    if (!signal.aborted) throw explain(error, connection, connection.consumer_group_id);
    throw new PluginError(
      `${connection.brokers.join(', ')} did not answer within ${CHECK_MS / 1000} seconds.`,
      {
        fix: 'Check brokers, and that a firewall lets this machine reach them and the addresses that they advertise.',
      },
    );
  } finally {
    await settles(admin.disconnect(), CHECK_CLOSE_MS);
    client.destroy();
  }
}

async function lookUpOnceStarted(
  admin: Admin,
  connection: Connection,
  signal: AbortSignal,
): Promise<number> {
  const endMs = performance.now() + STARTING_MS;
  for (;;) {
    try {
      return await lookUp(admin, connection);
    } catch (error) {
      if (performance.now() > endMs || !new ErrorChain(error).has(...STARTING)) throw error;
      await sleep(STARTING_EVERY_MS, undefined, { signal });
    }
  }
}

async function lookUp(admin: Admin, connection: Connection): Promise<number> {
  await admin.connect();
  // Listing topics is the only request that never creates one, regardless of
  // auto.create.topics.enable.
  if (!(await admin.listTopics()).includes(connection.topic_name)) {
    const who = userOf(connection.auth ?? {});
    throw new PluginError(
      `There is no topic "${connection.topic_name}" on ${connection.brokers.join(', ')} that ${who} may see.`,
      { fix: 'Check topic_name; create the topic; or give the user Describe and Read on it.' },
    );
  }
  const partitions = await admin.fetchTopicOffsets(connection.topic_name);
  // The default group is not checked, because it is derived from the source id, which is unknown
  // before the source is saved.
  if (connection.consumer_group_id) await admin.describeGroups([connection.consumer_group_id]);
  return partitions.length;
}

/** With `context.workers` group members. Rejects with a `PluginError` if a member fails. */
async function run(
  connection: Connection,
  handle: Handle,
  context: SourceContext<Settings>,
): Promise<void> {
  context.report('connecting');
  const members: GroupMember[] = [];
  let shared: SharedByMembers = {
    memory: new SourceMemory(),
    committed: new Map(),
    startsAt: new Map(),
    topicId: undefined,
  };
  const aborted = whenAborted(context.signal);
  const ended = new AbortController();
  const over = AbortSignal.any([context.signal, ended.signal]);
  let reset = Promise.resolve();
  let fail: (error: unknown) => void = () => {};
  const failed = new Promise<never>((_resolve, reject) => (fail = reject));
  const resize = async (workers: number) => {
    if (over.aborted) return;
    await Promise.all(members.slice(workers).map((member) => member.leave(LEAVE_MS)));
    members.splice(workers);
    while (members.length < workers && !over.aborted) {
      const before = members.length;
      while (members.length < Math.min(workers, before + JOIN_AT_ONCE)) {
        const clientId =
          members.length === 0 ? context.clientId : `${context.clientId}-${members.length + 1}`;
        members.push(new GroupMember(connection, handle, context, clientId, shared));
      }
      const added = members.slice(before);
      for (const member of added) member.failed.catch(fail);
      await Promise.all(added.map((member) => member.start()));
    }
  };
  try {
    mayLogIn(connection, context.settings);
    const known = Promise.all([
      evictDeadMembers(connection, context),
      currentTopicId(connection, groupOf(connection, context.sourceId), context),
    ]);
    const [startsAt, topicId] = (await Promise.race([known, aborted])) ?? [];
    shared = { ...shared, startsAt: startsAt ?? shared.startsAt, topicId };
    // Start one member first, so that not all members contact brokers that would accept none.
    const first = resize(1);
    let resized = first
      .then(() => resize(context.workers))
      .then(() => {
        if (!over.aborted) context.report('reading');
      });
    resized.catch(fail);
    // Apply changes in sequence, because members are identified by index.
    context.onWorkers?.((workers) => {
      resized = resized.then(() => resize(workers));
      resized.catch(fail);
    });
    reset = Promise.race([first, whenAborted(over)]).then(() =>
      offsetsReset(connection, context, shared.committed, over),
    );
    reset.catch(() => {});
    await Promise.race([aborted, reset, failed]);
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
