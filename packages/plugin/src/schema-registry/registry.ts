import { clip } from '../clip.js';
import { UndecodableError } from '../codec.js';
import { PluginError } from '../errors.js';
import { askRegistry } from './request.js';
import type { RegistrySettings } from './settings.js';

/** A schema with those that it refers to. */
export interface RegisteredSchema {
  readonly text: string;
  /** Each once, after the ones that it refers to. */
  readonly references: readonly { readonly name: string; readonly text: string }[];
}

/** For one schema with its references. */
const REFERENCES_MAX = 100;
const TEXT_MAX = 1024 * 1024;
/** For all schemas of a source. */
const KEPT_TEXT_MAX = 16 * 1024 * 1024;
const KEPT_MAX = 1_000;

interface Reference {
  readonly name: string;
  readonly subject: string;
  readonly version: number;
}

type Answer = Readonly<Record<string, unknown>>;

/**
 * The compiled schemas of a source. A schema never changes under its id, so it is kept until others
 * need its place.
 */
export class SchemaRegistry<Compiled> {
  /** In the order of use. */
  readonly #kept = new Map<string, { readonly compiled: Compiled; readonly size: number }>();
  #size = 0;

  /**
   * Opens no connection.
   * @param compile throws if the schema cannot be used
   */
  constructor(
    private readonly settings: RegistrySettings,
    private readonly compile: (schema: RegisteredSchema) => Compiled,
  ) {}

  /** Undefined until `load`. */
  get(name: string): Compiled | undefined {
    const kept = this.#kept.get(name);
    if (!kept) return undefined;
    if (this.#kept.size > 1) {
      this.#kept.delete(name);
      this.#kept.set(name, kept);
    }
    return kept.compiled;
  }

  /** As `load` of a codec. */
  async load(name: string, { signal }: { readonly signal: AbortSignal }): Promise<void> {
    const schema = await this.#read(name, signal);
    let compiled: Compiled;
    try {
      compiled = this.compile(schema);
    } catch (cause) {
      const reason = clip((cause as Error).message, 300).replace(/\.?$/, '.');
      throw new UndecodableError(`Its schema, ${name}, cannot be used: ${reason}`, {
        fix: 'Correct the schema in the registry.',
        cause,
      });
    }
    const size = schema.references.reduce((sum, { text }) => sum + text.length, schema.text.length);
    for (const [oldest, kept] of this.#kept) {
      if (this.#kept.size < KEPT_MAX && this.#size + size <= KEPT_TEXT_MAX) break;
      this.#kept.delete(oldest);
      this.#size -= kept.size;
    }
    this.#kept.set(name, { compiled, size });
    this.#size += size;
  }

  async #read(name: string, signal: AbortSignal): Promise<RegisteredSchema> {
    const [kind, id = ''] = name.split(' ');
    if (kind === 'version') return this.#readGlue(id, signal);
    if (this.settings.framing === 'apicurio') return this.#readApicurio(id, signal);
    const answer = await this.#json(`/schemas/ids/${id}`, name, signal);
    const found: { name: string; text: string }[] = [];
    await this.#follow(answer, { found, seen: new Set(), size: 0 }, signal);
    return { text: schemaOf(answer, 'schema'), references: found };
  }

  /** Depth first, so that a schema comes after those that it refers to. */
  async #follow(
    answer: Answer,
    so: { found: { name: string; text: string }[]; seen: Set<string>; size: number },
    signal: AbortSignal,
  ): Promise<void> {
    for (const { name, subject, version } of (answer['references'] ?? []) as Reference[]) {
      if (so.seen.has(name)) continue;
      so.seen.add(name);
      if (so.seen.size > REFERENCES_MAX)
        throw tooLarge(`It refers to more than ${REFERENCES_MAX} other schemas.`);
      const path = `/subjects/${encodeURIComponent(subject)}/versions/${version}`;
      const referred = await this.#json(path, `${subject} version ${version}`, signal);
      await this.#follow(referred, so, signal);
      const text = schemaOf(referred, 'schema');
      so.size += text.length;
      if (so.size > TEXT_MAX) throw tooLarge(`It has more than ${TEXT_MAX} characters.`);
      so.found.push({ name, text });
    }
  }

  async #readApicurio(id: string, signal: AbortSignal): Promise<RegisteredSchema> {
    const path = `/ids/globalIds/${id}`;
    const { text } = await this.#found(path, `id ${id}`, signal);
    const references = JSON.parse(
      (await this.#found(`${path}/references`, `id ${id}`, signal)).text,
    ) as { name: string; groupId?: string; artifactId: string; version: string }[];
    const found: { name: string; text: string }[] = [];
    for (const { name, groupId, artifactId, version } of references.slice(0, REFERENCES_MAX)) {
      const [group, artifact] = [groupId ?? 'default', artifactId].map(encodeURIComponent);
      const at = `/groups/${group}/artifacts/${artifact}/versions/${encodeURIComponent(version)}`;
      found.push({ name, text: (await this.#found(at, name, signal)).text });
    }
    return { text: limited(text), references: found };
  }

  async #readGlue(id: string, signal: AbortSignal): Promise<RegisteredSchema> {
    const body = JSON.stringify({ SchemaVersionId: id });
    const answer = await askRegistry(this.settings, { path: '/', body, signal });
    if (answer.status === 400 && answer.text.includes('EntityNotFoundException'))
      throw unknown(`version ${id}`);
    if (answer.status !== 200) throw unexpected(answer);
    return { text: schemaOf(jsonOf(answer), 'SchemaDefinition'), references: [] };
  }

  async #json(path: string, name: string, signal: AbortSignal): Promise<Answer> {
    return jsonOf(await this.#found(path, name, signal));
  }

  async #found(path: string, name: string, signal: AbortSignal) {
    const answer = await askRegistry(this.settings, { path, signal });
    // Without its own error, a proxy may have answered for the registry.
    if (answer.status === 404 && answer.text.includes('"error_code"')) throw unknown(name);
    if (answer.status !== 200) throw unexpected(answer);
    return answer;
  }
}

/**
 * Checks that a registry answers with the credentials.
 * @throws `PluginError` with the field to change
 */
export async function checkRegistry(
  settings: RegistrySettings,
  { signal }: { readonly signal: AbortSignal },
): Promise<void> {
  if (settings.framing === 'glue') {
    const body = JSON.stringify({ SchemaVersionId: '00000000-0000-0000-0000-000000000000' });
    const answer = await askRegistry(settings, { path: '/', body, signal });
    if (answer.status === 400 && answer.text.includes('EntityNotFoundException')) return;
    if (answer.status !== 200) throw unexpected(answer);
    return;
  }
  const path = settings.framing === 'apicurio' ? '/system/info' : '/schemas/types';
  const answer = await askRegistry(settings, { path, signal });
  if (answer.status === 200) return;
  throw new PluginError(
    `registry.url does not name the API of a schema registry (${answer.status}).`,
    {
      fix:
        settings.framing === 'apicurio'
          ? 'Let it end with /apis/registry/v2, or choose the framing confluent.'
          : 'Give the base of its API: for Confluent without a path, for Apicurio with /apis/ccompat/v7.',
      said: answer.text,
    },
  );
}

function jsonOf(answer: { readonly status: number; readonly text: string }): Answer {
  try {
    const json: unknown = JSON.parse(answer.text);
    if (typeof json === 'object' && json !== null) return json as Answer;
  } catch {
    // Reported below.
  }
  throw unexpected(answer);
}

function schemaOf(answer: Answer, field: string): string {
  const text = answer[field];
  if (typeof text !== 'string') throw unexpected({ status: 200, text: 'no schema' });
  return limited(text);
}

function limited(text: string): string {
  if (text.length > TEXT_MAX) throw tooLarge(`It has more than ${TEXT_MAX} characters.`);
  return text;
}

function tooLarge(reason: string): UndecodableError {
  return new UndecodableError(`Its schema is too large. ${reason}`, {
    fix: 'Split the schema, or send another format.',
  });
}

function unknown(name: string): UndecodableError {
  return new UndecodableError(`The schema registry has no schema ${name}.`, {
    fix: 'Register the schema, or give the source the registry of its producers; then replay the message.',
  });
}

function unexpected({ status, text }: { readonly status: number; readonly text: string }) {
  return new PluginError(`The schema registry gives an unexpected answer (${status}).`, {
    fix: 'Check registry.url, and the log of the registry.',
    said: text,
  });
}
