import { gunzipSync, gzipSync } from 'node:zlib';
import { parquetMetadata, parquetReadObjects } from 'hyparquet';
import {
  ByteWriter,
  ParquetWriter,
  schemaFromColumnData,
  type ColumnSource,
} from 'hyparquet-writer';
import type { ArchivedEvent } from '@gateway/store/retention/archive';

type ParquetColumn = Omit<ColumnSource, 'name' | 'data'>;

const REQUIRED: ParquetColumn = { type: 'STRING', nullable: false };
const OPTIONAL: ParquetColumn = { type: 'STRING' };
/** A dictionary of values that hardly repeat takes time and saves nothing. */
const DISTINCT: ParquetColumn = { ...REQUIRED, encoding: 'PLAIN' };

const COLUMNS: Readonly<Record<keyof ArchivedEvent, ParquetColumn>> = {
  // Ids are strings: Spark refuses the UUID type of Parquet, and other readers show its bytes.
  id: { ...DISTINCT, statistics: true },
  occurred_at: { type: 'TIMESTAMP', nullable: false, statistics: true },
  accepted_at: { type: 'TIMESTAMP', nullable: false },
  source_id: OPTIONAL,
  coordinates: DISTINCT,
  event_type: { ...REQUIRED, statistics: true },
  message_type: REQUIRED,
  endpoint_id: OPTIONAL,
  owner_id: OPTIONAL,
  idempotency_key: OPTIONAL,
  status: REQUIRED,
  outcome: OPTIONAL,
  headers: REQUIRED,
  message: OPTIONAL,
  notes: OPTIONAL,
  data: DISTINCT,
  deliveries: DISTINCT,
};

function columnData(events: readonly ArchivedEvent[]): ColumnSource[] {
  return (Object.keys(COLUMNS) as (keyof ArchivedEvent)[]).map((name) => ({
    statistics: false,
    offsetIndex: false,
    ...COLUMNS[name],
    name,
    data: events.map((event) => event[name]),
  }));
}

/** Writes events to a Parquet file in memory. Each call of `add` writes a row group. */
export class EventFileWriter {
  readonly #writer = new ByteWriter();
  readonly #parquet = new ParquetWriter({
    writer: this.#writer,
    schema: schemaFromColumnData({ columnData: columnData([]) }),
    codec: 'GZIP',
    compressors: { GZIP: (bytes) => gzipSync(bytes) },
    createdBy: 'gateway',
  });
  events = 0;
  firstId = '';
  lastId = '';

  /** The compressed size until now. */
  get bytes(): number {
    return this.#writer.offset;
  }

  /** Adds events, sorted by id and after those that were added before. */
  add(events: readonly ArchivedEvent[]): void {
    void this.#parquet.write({ columnData: columnData(events), rowGroupSize: events.length });
    if (this.events === 0) this.firstId = events[0]!.id;
    this.lastId = events.at(-1)!.id;
    this.events += events.length;
  }

  finish(): Uint8Array {
    void this.#parquet.finish();
    return this.#writer.getBytes();
  }
}

/** A row group at a time. Throws if it is not a file of events. */
export async function* readEventFile(bytes: Uint8Array): AsyncGenerator<ArchivedEvent[]> {
  const buffer = bytes.buffer.slice(
    bytes.byteOffset,
    bytes.byteOffset + bytes.byteLength,
  ) as ArrayBuffer;
  const file = {
    byteLength: buffer.byteLength,
    slice: (start: number, end?: number) => buffer.slice(start, end),
  };
  const metadata = parquetMetadata(buffer);
  let rowStart = 0;
  for (const { num_rows } of metadata.row_groups) {
    const rowEnd = rowStart + Number(num_rows);
    yield (await parquetReadObjects({
      file,
      metadata,
      rowStart,
      rowEnd,
      // A file that an earlier version wrote may have fewer.
      columns: Object.keys(COLUMNS).filter((it) => metadata.schema.some(({ name }) => name === it)),
      compressors: { GZIP: (input) => gunzipSync(input) },
    })) as unknown as ArchivedEvent[];
    rowStart = rowEnd;
  }
}
