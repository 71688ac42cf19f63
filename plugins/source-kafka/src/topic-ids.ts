import { createRequire } from 'node:module';

/**
 * Detects a recreated topic. It keeps its name, and an old offset may exist in it, so continuing
 * there would silently skip records. Since Kafka 2.8, topics have ids (KIP-516): members commit
 * each offset with the topic id, and offsets of another topic are ignored. The id is requested
 * here, because kafkajs requests an older version of the metadata, without ids.
 */

/** Private members of kafkajs 2.2.4, the pinned version. */
export interface Broker {
  readonly versions: Readonly<Record<number, { readonly maxVersion: number }>>;
  readonly connectionPool: { send(request: MetadataRequest): Promise<string | undefined> };
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
    decode(answer: Buffer): Promise<{ readonly id: string | undefined }>;
    parse(decoded: { readonly id: string | undefined }): Promise<string | undefined>;
  };
}

interface Encoder {
  writeBuffer(bytes: Buffer): Encoder;
  writeUVarInt(value: number): Encoder;
  writeUVarIntString(value: string): Encoder;
}

interface Decoder {
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

/**
 * In the format of Kafka's tools. Undefined if the broker predates Kafka 2.8 or the user may not
 * see the topic.
 */
export async function topicId(
  { versions, connectionPool }: Broker,
  topic: string,
): Promise<string | undefined> {
  return (versions[METADATA]?.maxVersion ?? 0) < WITH_IDS
    ? undefined
    : connectionPool.send(asking(topic));
}

/**
 * Metadata version 10 (https://kafka.apache.org/protocol#The_Messages_Metadata). The response is
 * read only up to the id.
 */
function asking(topic: string): MetadataRequest {
  const encode = () => {
    const encoder = new (load('kafkajs/src/protocol/encoder') as new () => Encoder)();
    encoder.writeUVarInt(0); // Tagged header fields, unsupported by kafkajs.
    encoder
      .writeUVarInt(1 + 1)
      .writeBuffer(NONE)
      .writeUVarIntString(topic)
      .writeUVarInt(0);
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
    let id: string | undefined;
    decoder.readUVarIntArray(() => {
      const error = decoder.readInt16();
      decoder.readUVarIntString(); // name
      const bytes = decoder.readBytes(ID_BYTES);
      if (error === 0 && !bytes.equals(NONE)) id = bytes.toString('base64url');
    });
    return Promise.resolve({ id });
  };
  return {
    request: { apiKey: METADATA, apiVersion: WITH_IDS, apiName: 'Metadata', encode },
    response: { decode, parse: ({ id }) => Promise.resolve(id) },
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
    for (const { topic, partitions } of answer.responses) {
      const marked = partitions.filter(({ metadata }) => metadata?.startsWith(PREFIX));
      const current = marked.length > 0 ? idToCommit(await topicId(this, topic)) : undefined;
      if (current !== undefined)
        for (const partition of marked)
          if (partition.metadata !== current) partition.offset = NO_OFFSET;
    }
    return answer;
  };
}
