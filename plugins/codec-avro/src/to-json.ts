import { UndecodableError } from '@gateway/plugin';
import { floatText, numberText } from '@gateway/plugin/schema-registry';
import { logicalText } from './logical.js';
import { malformed, Reader } from './reader.js';
import type { AvroType } from './schema.js';

export interface AvroJsonOptions {
  readonly numbers: 'strings' | 'exact';
  readonly unions: 'plain' | 'tagged';
}

/** As deep as core accepts. */
const DEPTH_MAX = 200;

interface AvroJob extends AvroJsonOptions {
  readonly from: Reader;
  readonly maxLength: number;
  text: string;
  depth: number;
}

/**
 * Writes JSON text directly, so that no digit is lost. A message that claims to have many items stops
 * at the length limit, because each item has at least one character.
 */
export function toJson(
  type: AvroType,
  bytes: Uint8Array,
  maxLength: number,
  { numbers, unions }: AvroJsonOptions,
): string {
  const from = new Reader(bytes);
  const job: AvroJob = { numbers, unions, from, maxLength, text: '', depth: 0 };
  write(type, job);
  if (from.left > 0) throw malformed(`${from.left} bytes are left after it`);
  return job.text;
}

function write(type: AvroType, job: AvroJob): void {
  if (job.text.length > job.maxLength)
    throw new UndecodableError(`It is longer than ${job.maxLength} characters as JSON.`, {
      fix: 'Send smaller messages, or raise ingest.max_message_bytes.',
    });
  const { from } = job;
  switch (type.kind) {
    case 'null':
      job.text += 'null';
      return;
    case 'boolean':
      job.text += booleanOf(from.byte());
      return;
    case 'int':
    case 'long': {
      const value = from.long();
      const isPlain = type.kind === 'int' || job.numbers === 'exact';
      job.text += logicalText(type.logical, value, job) ?? (isPlain ? value : `"${value}"`);
      return;
    }
    case 'float':
      job.text += floatText(from.float());
      return;
    case 'double':
      job.text += numberText(from.double());
      return;
    case 'string':
      job.text += JSON.stringify(from.string());
      return;
    case 'bytes':
    case 'fixed': {
      const bytes = from.slice('size' in type ? type.size : from.count());
      job.text +=
        logicalText(type.logical, bytes, job) ?? `"${Buffer.from(bytes).toString('base64')}"`;
      return;
    }
    case 'enum': {
      const symbol = type.symbols[from.count()];
      if (symbol === undefined) throw malformed(`the enum ${type.name} has no such symbol`);
      job.text += JSON.stringify(symbol);
      return;
    }
    default:
      return writeInner(type, job);
  }
}

function writeInner(
  type: Extract<AvroType, { kind: 'union' | 'array' | 'map' | 'record' }>,
  job: AvroJob,
): void {
  const { from } = job;
  if (++job.depth > DEPTH_MAX) throw malformed(`it nests more than ${DEPTH_MAX} deep`);
  switch (type.kind) {
    case 'union':
      union(type.branches, job);
      break;
    case 'array':
      job.text += '[';
      blocks(job, () => write(type.items, job));
      job.text += ']';
      break;
    case 'map':
      job.text += '{';
      blocks(job, () => {
        job.text += `${JSON.stringify(from.string())}:`;
        write(type.items, job);
      });
      job.text += '}';
      break;
    case 'record':
      job.text += '{';
      for (let i = 0; i < type.fields.length; i++) {
        const { label, type: of } = type.fields[i]!;
        job.text += i === 0 ? label : `,${label}`;
        write(of, job);
      }
      job.text += '}';
  }
  job.depth--;
}

/** A negative number of items is followed by their bytes, which readers may skip. */
function blocks(job: AvroJob, item: () => void): void {
  let isFirst = true;
  for (;;) {
    let count = job.from.count();
    if (count === 0) return;
    if (count < 0) {
      count = -count;
      job.from.count();
    }
    for (; count > 0; count--) {
      if (!isFirst) job.text += ',';
      isFirst = false;
      item();
    }
  }
}

function union(branches: readonly AvroType[], job: AvroJob): void {
  const branch = branches[job.from.count()];
  if (!branch) throw malformed('a union has no such branch');
  if (job.unions === 'plain' || branch.kind === 'null') return write(branch, job);
  job.text += `{${JSON.stringify('name' in branch ? branch.name : branch.kind)}:`;
  write(branch, job);
  job.text += '}';
}

function booleanOf(byte: number): string {
  if (byte > 1) throw malformed(`a boolean is ${byte}`);
  return byte === 1 ? 'true' : 'false';
}
