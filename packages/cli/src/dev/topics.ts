import { GatewayError } from '@gateway/core/errors';
import { lookUp, type Api } from './api.js';
import { readMemory, remember } from './memory.js';
import { topicFunction } from './sample.js';

/** What `--kafka` names. */
export interface Topic {
  readonly brokers: readonly string[];
  readonly name: string;
}

/** Reads `host:port/topic`, or `host:port,host:port/topic`. Throws `wrong_use` for anything else. */
export function parseTopic(text: string): Topic {
  const [, brokers = '', name = ''] = /^([^/\s]+)\/([A-Za-z0-9._-]{1,249})$/.exec(text) ?? [];
  const list = brokers.split(',');
  if (name && list.every((broker) => /^[^:/\s[\]]+:\d{1,5}$/.test(broker))) return { brokers: list, name };
  throw new GatewayError('wrong_use', {
    sentence: `--kafka must be host:port/topic, not "${text}"`,
    fix: 'write for example --kafka localhost:9092/orders',
  });
}

/**
 * Makes a source of the topic, or points the one that is there at these brokers. The API tests a new connection first.
 *
 * @param beforeChange is called when the source is about to be opened anew
 * @returns true when it was not a source before
 * @throws Refused with the sentence of the source plugin when the broker or the topic cannot be reached; nothing is changed then
 */
export async function addTopic(api: Api, file: string, { brokers, name }: Topic, beforeChange: () => void): Promise<boolean> {
  const { project_id: projectId = '', topics = {} } = readMemory(file);
  const path = `/projects/${projectId}/sources`;
  // Without a consumer group id every source has a group of its own, so that two developers on one cluster do not share the messages out between them.
  const kafka = { brokers, topic_name: name };
  const pubSub = { type: 'kafka', workers: 1, kafka };
  const id = topics[name];
  const known = await lookUp<{ pub_sub: { kafka?: { brokers?: readonly string[] } } }>(api, path, id);
  if (known) {
    if (known.pub_sub.kafka?.brokers?.join() === brokers.join()) return false;
    beforeChange();
    await api.put(`${path}/${id}`, { pub_sub: pubSub });
    return false;
  }
  const { uid } = await api.post<{ uid: string }>(path, {
    name: `Topic ${name}`,
    type: 'pub_sub',
    pub_sub: pubSub,
    body_function: topicFunction(name),
  });
  remember(file, { topics: { ...topics, [name]: uid } });
  return true;
}
