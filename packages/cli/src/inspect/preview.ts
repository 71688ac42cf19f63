import { clip } from '@gateway/core/json';
import { basename } from 'node:path';
import { preview as runPreview, type Preview } from '@gateway/ingest/once/preview';
import type { RunOnceOptions } from '@gateway/ingest/once/run-once';
import type { Config } from '@gateway/core/config';
import { GatewayError } from '@gateway/core/errors';
import { maskUrls } from '@gateway/core/logging';
import { type ExplainedRoute, subscriptionRecord } from '@gateway/store/explain';
import { readInput, withDatabase, wrongUse } from '../app/gateway-command.js';
import { escapeTerminal, escapeLine } from '../output/escape-terminal.js';
import { mismatchLines, targetsText } from './route-text.js';

/**
 * Limits of the text output: characters per result, and the number of results. `--json` prints
 * everything.
 */
const RESULT_CHARS = 4_000;
const RESULTS_MAX = 20;
const INDENT = '  ';

interface PreviewOptions {
  readonly config: Config;
  readonly sandbox: RunOnceOptions['sandbox'];
  /** The file with the function. If undefined, the source's function is run. */
  readonly file: string | undefined;
  readonly sourceId: string | undefined;
  readonly projectId: string | undefined;
  readonly headers: Readonly<Record<string, string>>;
}

interface RoutedPreview extends Preview {
  /** The function's file name, or `the function of` followed by its source's name. */
  readonly name: string;
  readonly text: string;
  readonly sampleBytes: number;
  /**
   * The route of each result, or null if it would not become an event. The list is null without a
   * project.
   */
  readonly routes: readonly (ExplainedRoute | null)[] | null;
}

/**
 * Runs the function on the sample. Queries the database only if a project or a source is given.
 * Throws `wrong_use` if the source has no function or belongs to another project, and `not_found`
 * if the source or project does not exist.
 */
export async function previewOnce(
  sample: Uint8Array,
  { config, sandbox, file, sourceId, projectId, headers }: PreviewOptions,
): Promise<RoutedPreview> {
  const run = async (own: { name: string; text: string }) => {
    const preview = await runPreview(
      own.text,
      { body: sample, headers },
      { sandbox, maxMessageBytes: config.ingest.max_message_bytes },
    );
    return { ...preview, ...own, sampleBytes: sample.byteLength };
  };
  const own =
    file === undefined
      ? undefined
      : { name: basename(file), text: (await readInput('the function', file)).toString('utf8') };
  if (own && projectId === undefined) return { ...(await run(own)), routes: null };

  const [{ findSourceAnywhere, readRouting }, { explainRoute }] = await Promise.all([
    import('@gateway/store/config'),
    import('@gateway/store/explain'),
  ]);
  return withDatabase(config, async ({ knex, pool }) => {
    const source = own ? undefined : await findSourceAnywhere(knex, sourceId!);
    if (!own && !source) throw new GatewayError('not_found', { thing: 'source', id: sourceId! });
    if (source && projectId !== undefined && projectId !== source.project_id)
      throw wrongUse(
        `the source ${source.id} belongs to the project ${source.project_id}, not ${projectId}`,
        'omit --project-id: the source implies its project',
      );
    if (source && !source.body_function?.trim())
      throw wrongUse(
        `the source ${source.name} has no function: its messages must already be ingest messages`,
        'name a file with a function to try one',
      );
    const id = source?.project_id ?? projectId!;
    const records = await readRouting(pool, id);
    if (!records || records.project.deleted_at !== null)
      throw new GatewayError('not_found', { thing: 'project', id });
    const preview = await run(
      own ?? { name: `the function of ${source!.name}`, text: source!.body_function! },
    );
    return {
      ...preview,
      routes: preview.results.map(({ event }) => event && explainRoute(records, event)),
    };
  });
}

/** Returns the value for `--json`, with every result in full. */
export function previewRecord({
  kind,
  name,
  sampleBytes,
  refusal,
  results,
  logs,
  durationMs,
  routes,
}: RoutedPreview): unknown {
  return {
    outcome: kind,
    function: name,
    sample_bytes: sampleBytes,
    duration_ms: durationMs,
    console: logs,
    refusal,
    results: results.map(({ json, event, refusal: refused }, at) => ({
      message: JSON.parse(json) as unknown,
      refusal: refused,
      notes: JSON.parse(event?.notes ?? '[]') as unknown,
      ...(routes && { route: routes[at] ? routeRecord(routes[at]) : null }),
    })),
  };
}

function routeRecord({ rule, outcome, targets, subscriptions }: ExplainedRoute): unknown {
  const endpoints = targets.map(({ endpoint: { id: uid, name, url, status }, subscription }) => ({
    ...{ uid, name, url: maskUrls(url), status },
    subscription_id: subscription?.id ?? null,
  }));
  return {
    rule,
    outcome,
    endpoints,
    subscriptions: subscriptions.map((it) => subscriptionRecord(it)),
  };
}

/** Formats a preview as text that is safe to print on a terminal. */
export function previewText(preview: RoutedPreview): string {
  const { name, kind, text, refusal, results, logs, durationMs, sampleBytes } = preview;
  const called =
    durationMs === null
      ? 'not called'
      : `called with ${sampleBytes} bytes, ${durationMs.toFixed(1)} ms`;
  const lines = [
    `${escapeLine(name)}: ${called}`,
    ...logs.map((line) => `console: ${escapeLine(line)}`),
  ];
  for (const at of results.slice(0, RESULTS_MAX).keys())
    lines.push('', ...resultLines(preview, at));
  if (results.length > RESULTS_MAX)
    lines.push('', `${results.length - RESULTS_MAX} more results; --json has all`);
  lines.push('');
  if (kind === 'accepted') lines.push(...acceptedLines(preview));
  if (kind === 'dropped')
    lines.push('It would be dropped by the function: acknowledged and counted, but not stored.');
  if (refusal) {
    const { code, reason } = refusal;
    lines.push(`It would be quarantined: ${code}`, `${INDENT}${escapeLine(reason)}`);
    const [, number] = (code.startsWith('transform_') && /on line (\d+)/.exec(reason)) || [];
    const line = number && text.split('\n')[Number(number) - 1];
    if (line !== undefined) lines.push(`${INDENT}${number} | ${escapeLine(line, 200)}`);
  }
  return lines.join('\n');
}

function resultLines({ results, routes }: RoutedPreview, at: number): string[] {
  const { json, event, refusal } = results[at]!;
  const route = routes?.[at];
  const text = escapeTerminal(JSON.stringify(JSON.parse(json), null, 2));
  const more =
    text.length > RESULT_CHARS
      ? [`… ${text.length - RESULT_CHARS} more characters; --json has all`]
      : [];
  const lines = [...clip(text, RESULT_CHARS, '').split('\n'), ...more];
  if (refusal) lines.push(`refused: ${escapeLine(refusal.reason)}`);
  if (event?.notes)
    lines.push(...(JSON.parse(event.notes) as string[]).map((note) => `note: ${note}`));
  if (route)
    lines.push(
      targetsText(route),
      ...mismatchLines(route.subscriptions).map((line) => `not by ${line}`),
    );
  return [
    results.length > 1 ? `result ${at + 1} of ${results.length}` : 'result',
    ...lines.map((line) => INDENT + line),
  ];
}

function acceptedLines({ results }: RoutedPreview): string[] {
  const keys = results.flatMap(({ event }) => event?.idempotencyKey ?? []);
  const types = new Set(results.flatMap(({ event }) => event?.eventType ?? []));
  const count = results.length === 1 ? 'one event' : `${results.length} events`;
  const twice = keys.length > new Set(keys).size;
  return [
    `It would be accepted as ${count}: ${escapeLine([...types].slice(0, 10).join(', '), 400)}.`,
    ...(twice
      ? [
          'Some of them have the same idempotency_key: only the first with each key becomes an event.',
        ]
      : []),
  ];
}
