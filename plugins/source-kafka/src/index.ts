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
import { openClient, silent } from './client.js';
import { groupOf, mayLogIn, type Connection, type Settings } from './connection.js';
import { explain, idleMembers, silentBrokers, userOf } from './explain.js';
import { GroupMember, type SharedByMembers } from './group-member.js';
import { SourceMemory } from './memory.js';
import { begin, seek, type Beginning } from './positions.js';
import { matching, topicsChanged } from './topics.js';
import { offsetsReset, watch } from './watch.js';

export type { Auth, Connection } from './connection.js';

const plugin: SourcePlugin<Connection, Settings> = {
  check,
  run,
  async watch(connection, context) {
    mayLogIn(connection, context.settings);
    await watch(connection, context);
  },
  async seek(connection, context) {
    mayLogIn(connection, context.settings);
    return seek(connection, context);
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
/** The topics of a pattern that `check` looks at. */
const CHECK_TOPICS_MAX = 20;
/** For `check`. The metadata of a large cluster takes a few megabytes. */
const CHECK_ANSWER_MAX_BYTES = 16 * 1024 * 1024;

/**
 * For a leaving member to settle its messages, as in a rebalance. The rest are redelivered and
 * deduplicated.
 */
const LEAVE_MS = 5_000;
const JOIN_AT_ONCE = 16;
const TELL_MS = 1_000;

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
    return idleMembers(connection, partitions ?? 0, context.workers);
  } catch (error) {
    context.signal.throwIfAborted();
    if (!signal.aborted) throw explain(error, connection, connection.consumer_group_id);
    throw silentBrokers(connection, CHECK_MS);
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
  const { topic_name: topic } = connection;
  // Listing topics is the only request that never creates one, regardless of
  // auto.create.topics.enable.
  const names = await admin.listTopics();
  const topics = topic === undefined ? matching(names, connection) : [topic];
  if (topics.length === 0 || !names.includes(topics[0]!)) {
    const who = userOf(connection.auth ?? {});
    throw new PluginError(
      `There is no topic ${topic === undefined ? `that matches "${connection.topic_pattern}"` : `"${topic}"`} on ${connection.brokers.join(', ')} that ${who} may see.`,
      {
        fix: `Check ${topic === undefined ? 'topic_pattern' : 'topic_name'}; create the topic; or give the user Describe and Read on it.`,
      },
    );
  }
  let partitions = 0;
  for (const name of topics.slice(0, CHECK_TOPICS_MAX))
    partitions += (await admin.fetchTopicOffsets(name)).length;
  // The default group is not checked, because it is derived from the source id, which is unknown
  // before the source is saved.
  if (connection.consumer_group_id) await admin.describeGroups([connection.consumer_group_id]);
  return topics.length > CHECK_TOPICS_MAX ? Infinity : partitions;
}

/**
 * With `context.workers` group members, which start again when other topics match the pattern.
 * Rejects with a `PluginError` if a member fails.
 */
async function run(
  connection: Connection,
  handle: Handle,
  context: SourceContext<Settings>,
): Promise<void> {
  context.report('connecting');
  const memory = new SourceMemory();
  let workers = context.workers;
  let resize: ((workers: number) => void) | undefined;
  context.onWorkers?.((wanted) => {
    workers = wanted;
    resize?.(wanted);
  });
  try {
    mayLogIn(connection, context.settings);
    while (!context.signal.aborted) {
      const beginning = await Promise.race([
        begin(connection, context),
        whenAborted(context.signal),
      ]);
      if (!beginning || context.signal.aborted) return;
      const changed = new AbortController();
      const over = AbortSignal.any([context.signal, changed.signal]);
      const looking =
        connection.topic_pattern === undefined
          ? undefined
          : topicsChanged(connection, beginning.topics, {
              clientId: context.clientId,
              signal: over,
            });
      void looking?.then(() => changed.abort());
      if (beginning.topics.length === 0) {
        context.report(
          'reading',
          `There is no topic yet that matches "${connection.topic_pattern}".`,
        );
        await whenAborted(over);
        continue;
      }
      try {
        const members = { ...beginning, memory, workers };
        await readTopics(connection, handle, { ...context, signal: over }, members, (follow) => {
          resize = follow;
        });
      } finally {
        resize = undefined;
        changed.abort();
      }
    }
  } catch (error) {
    const explained = explain(error, connection, groupOf(connection, context.sourceId));
    context.report('failing', `${explained.message} ${explained.fix}`);
    throw explained;
  }
}

/** Until the signal of the context aborts. */
async function readTopics(
  connection: Connection,
  handle: Handle,
  context: SourceContext<Settings>,
  beginning: Beginning & Pick<SharedByMembers, 'memory'> & { readonly workers: number },
  onWorkers: (follow: (workers: number) => void) => void,
): Promise<void> {
  const members: GroupMember[] = [];
  let passedOver = 0;
  const tell = () => context.report('reading', toldOf(beginning.told, passedOver));
  let telling: NodeJS.Timeout | undefined;
  const shared: SharedByMembers = {
    ...beginning,
    committed: new Map(),
    passedOver: (messages) => {
      passedOver += messages;
      telling ??= setTimeout(() => {
        telling = undefined;
        tell();
      }, TELL_MS);
    },
  };
  const ended = new AbortController();
  const over = AbortSignal.any([context.signal, ended.signal]);
  const aborted = whenAborted(context.signal);
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
    // Start one member first, so that not all members contact brokers that would accept none.
    const first = resize(1);
    let resized = first
      .then(() => resize(beginning.workers))
      .then(() => {
        if (!over.aborted) tell();
      });
    resized.catch(fail);
    // Apply changes in sequence, because members are identified by index.
    onWorkers((workers) => {
      resized = resized.then(() => resize(workers));
      resized.catch(fail);
    });
    reset = Promise.race([first, whenAborted(over)]).then(() =>
      offsetsReset(connection, context, shared.topics, shared.committed, over),
    );
    reset.catch(() => {});
    await Promise.race([aborted, reset, failed]);
    await Promise.all(members.map((member) => member.drain()));
  } finally {
    clearTimeout(telling);
    ended.abort();
    await Promise.all([...members.map((member) => member.close()), settles(reset, CHECK_CLOSE_MS)]);
  }
}

function toldOf(told: string | undefined, passedOver: number): string | undefined {
  const again =
    passedOver > 0 &&
    `Passed over ${passedOver} messages that were read before: their events have been deleted by retention, so they would have been delivered a second time. To deliver them again, move the source with redeliver.`;
  return [told, again].filter(Boolean).join(' ') || undefined;
}
