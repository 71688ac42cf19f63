import { basename } from 'node:path';
import type { ExplainedRoute, Preview, Previewer } from '@gateway/agent/inspect';
import type { Config } from '@gateway/core/config';
import { GatewayError } from '@gateway/core/errors';
import type { SourceRow } from '@gateway/store/config';
import { withDatabase } from '../app/database.js';
import { readInput, wrongUse } from '../app/flag-values.js';

/** A function to preview, and where its events go. */
export interface PreviewOptions {
  readonly config: Config;
  /** File with the function; undefined: that of the source. */
  readonly file: string | undefined;
  readonly sourceId: string | undefined;
  readonly projectId: string | undefined;
  /** Headers of the broker's message. */
  readonly headers: Readonly<Record<string, string>>;
}

/** A preview with where the events would go; null where no project is known. */
export interface RoutedPreview extends Preview {
  /** What the function is called: its file, or the name of its source. */
  readonly name: string;
  /** The text of the function. */
  readonly text: string;
  readonly sampleBytes: number;
  /** One for each result that would become an event; null: no database was asked. */
  readonly routes: readonly (ExplainedRoute | null)[] | null;
}

/**
 * Runs the function on the sample. The database is asked only when a project or a source is named.
 *
 * @throws GatewayError `wrong_use` for a file that cannot be read, `not_found` for a source or project that is not there
 */
export async function previewOnce(
  previewer: Previewer,
  sample: Uint8Array,
  { config, file, sourceId, projectId, headers }: PreviewOptions,
): Promise<RoutedPreview> {
  const run = async ({ name, text }: Pick<RoutedPreview, 'name' | 'text'>) => {
    const preview = await previewer.preview(text, { body: sample, headers });
    return { ...preview, name, text, sampleBytes: sample.byteLength };
  };
  const own = file === undefined ? undefined : { name: basename(file), text: (await readInput('the function', file)).toString('utf8') };
  if (own && projectId === undefined) return { ...(await run(own)), routes: null };

  const [{ findSourceAnywhere, readRouting }, { explainRoute }] = await Promise.all([
    import('@gateway/store/config'),
    import('@gateway/agent/inspect'),
  ]);
  return withDatabase(config, async (database) => {
    const stored = own ? undefined : storedFunction(await findSourceAnywhere(database.pool, sourceId!), sourceId!, projectId);
    const id = stored?.projectId ?? projectId!;
    const records = await readRouting(database.pool, id);
    if (!records || records.project.deleted_at !== null) throw new GatewayError('not_found', { thing: 'project', id });
    const preview = await run(own ?? stored!);
    return { ...preview, routes: preview.results.map(({ event }) => event && explainRoute(records, event)) };
  });
}

/** The function of a source, which must have one and belong to the project if that was named. */
function storedFunction(source: SourceRow | undefined, id: string, projectId: string | undefined) {
  if (!source) throw new GatewayError('not_found', { thing: 'source', id });
  const { name, body_function: text, project_id: ownProjectId } = source;
  if (projectId !== undefined && projectId !== ownProjectId)
    throw wrongUse(
      `the source ${id} belongs to the project ${ownProjectId}, not ${projectId}`,
      'omit --project-id: the project of the source is known',
    );
  if (text?.trim()) return { name: `the function of ${name}`, text, projectId: ownProjectId };
  throw wrongUse(
    `the source ${name} has no function: its messages are ingest messages as they come`,
    'name a file with a function to try one',
  );
}
