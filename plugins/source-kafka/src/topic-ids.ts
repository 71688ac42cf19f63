import { createRequire } from 'node:module';

/**
 * Detects a recreated topic. It keeps its name, and an old offset may exist in it, so continuing
 * there would silently skip records. Since Kafka 2.8, topics have ids (KIP-516): members commit
 * each offset with the topic id, and offsets of another topic are ignored. The id is requested
 * here, because kafkajs requests an older version of the metadata, without ids.
 */

/**
 * In the format of Kafka's tools, by topic. Lacks topics that the user may not see, and all if the
 * broker predates Kafka 2.8.
 */
export type TopicIds = ReadonlyMap<string, string>;

/** Private members of kafkajs 2.2.4, the pinned version. */
export interface Broker {
  readonly versions: Readonly<Record<number, { readonly maxVersion: number }>>;
  readonly connectionPool: { send(request: MetadataRequest): Promise<TopicIds> };
  offsetFetch(of: OffsetsAsked): Promise<OffsetsAnswer>;
}

interface OffsetsAsked {
  readonly groupId: string;
  readonly topics: readonly {
    readonly topic: string;
    readonly partitions: readonly { readonly partition: number }[];
  }[];
}

interface OffsetsAnswer {
  readonly responses: readonly {
    readonly topic: string;
    readonly partitions: readonly {
      readonly partition: number;
      offset: string;
      readonly metadata: string | null;
    }[];
  }[];
}

interface MetadataRequest {
  readonly request: {
    readonly apiKey: number;
    readonly apiVersion: number;
    readonly apiName: string;
    encode(): Promise<unknown>;
  };
  readonly response: {
    decode(answer: Buffer): Promise<TopicIds>;
    parse(decoded: TopicIds): Promise<TopicIds>;
  };
}

interface Encoder {
  writeBuffer(bytes: Buffer): Encoder;
  writeUVarInt(value: number): Encoder;
  writeUVarIntString(value: string): Encoder;
}

interface Decoder {
  readInt8(): number;
  readInt16(): number;
  readInt32(): number;
  readBytes(length: number): Buffer;
  readUVarIntString(): string | null;
  readUVarIntArray(reader: () => void): unknown;
  readTaggedFields(): unknown;
}

const METADATA = 3;
const WITH_IDS = 10;
const ID_BYTES = 16;
const NONE = Buffer.alloc(ID_BYTES);
const PREFIX = 'topic-id:';
const NO_OFFSET = '-1';

const load = createRequire(import.meta.url);

/** Metadata to commit with an offset. Undefined if the topic id is unknown. */
export function idToCommit(id: string | undefined): string | undefined {
  return id === undefined ? undefined : PREFIX + id;
}

export async function topicIds(
  { versions, connectionPool }: Broker,
  topics: readonly string[],
): Promise<TopicIds> {
  return (versions[METADATA]?.maxVersion ?? 0) < WITH_IDS
    ? new Map()
    : connectionPool.send(asking(topics));
}

/**
 * Metadata version 10 (https://kafka.apache.org/protocol#The_Messages_Metadata). The response is
 * read only up to the topics.
 */
function asking(topics: readonly string[]): MetadataRequest {
  const encode = () => {
    const encoder = new (load('kafkajs/src/protocol/encoder') as new () => Encoder)();
    encoder.writeUVarInt(0); // Tagged header fields, unsupported by kafkajs.
    encoder.writeUVarInt(topics.length + 1);
    for (const topic of topics) encoder.writeBuffer(NONE).writeUVarIntString(topic).writeUVarInt(0);
    // Four zero bytes: no automatic creation, no authorized operations of cluster or topics, no
    // tagged fields.
    return Promise.resolve(encoder.writeBuffer(Buffer.alloc(4)));
  };
  const decode = (answer: Buffer) => {
    const decoder = new (load('kafkajs/src/protocol/decoder') as new (bytes: Buffer) => Decoder)(
      answer,
    );
    decoder.readTaggedFields();
    decoder.readInt32(); // throttle_time_ms
    decoder.readUVarIntArray(() => {
      decoder.readInt32(); // node_id
      decoder.readUVarIntString(); // host
      decoder.readInt32(); // port
      decoder.readUVarIntString(); // rack
      decoder.readTaggedFields();
    });
    decoder.readUVarIntString(); // cluster_id
    decoder.readInt32(); // controller_id
    const ids = new Map<string, string>();
    decoder.readUVarIntArray(() => {
      const error = decoder.readInt16();
      const name = decoder.readUVarIntString();
      const bytes = decoder.readBytes(ID_BYTES);
      decoder.readInt8(); // is_internal
      decoder.readUVarIntArray(() => {
        decoder.readInt16(); // error_code
        decoder.readInt32(); // partition_index
        decoder.readInt32(); // leader_id
        decoder.readInt32(); // leader_epoch
        for (let list = 0; list < 3; list++) decoder.readUVarIntArray(() => decoder.readInt32()); // replica_nodes, isr_nodes, offline_replicas
        decoder.readTaggedFields();
      });
      decoder.readInt32(); // topic_authorized_operations
      decoder.readTaggedFields();
      if (error === 0 && name !== null && !bytes.equals(NONE))
        ids.set(name, bytes.toString('base64url'));
    });
    return Promise.resolve(ids);
  };
  return {
    request: { apiKey: METADATA, apiVersion: WITH_IDS, apiName: 'Metadata', encode },
    response: { decode, parse: (ids) => Promise.resolve(ids) },
  };
}

/**
 * Offsets of an earlier topic with the same name are ignored, so that a member begins with the
 * first record.
 */
export function forgetOffsetsOfEarlierTopics(): void {
  const { prototype } = load('kafkajs/src/broker') as { prototype: Broker };
  const { offsetFetch } = prototype;
  prototype.offsetFetch = async function (of) {
    const answer = await offsetFetch.call(this, of);
    const marked = answer.responses.flatMap(({ topic, partitions }) =>
      partitions.flatMap((it) => (it.metadata?.startsWith(PREFIX) ? { topic, it } : [])),
    );
    const topics = [...new Set(marked.map(({ topic }) => topic))];
    const ids = topics.length > 0 ? await topicIds(this, topics) : new Map<string, string>();
    for (const { topic, it } of marked)
      if (ids.has(topic) && it.metadata !== idToCommit(ids.get(topic))) it.offset = NO_OFFSET;
    return answer;
  };
}
