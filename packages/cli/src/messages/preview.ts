import type { FunctionTestResult } from '@gateway/client';
import type { Config } from '@gateway/core/config';
import { clip } from '@gateway/core/json';
import { escapeTerminal, escapeLine } from '../output/escape-terminal.js';
import { counted } from '../output/table.js';

/** Characters per result in the text output. `--json` prints everything. */
const RESULT_CHARS = 4_000;
const INDENT = '  ';
const NAMED_MAX = 50;

export interface FunctionPreview extends FunctionTestResult {
  /** The file name, or `the function of` followed by its source's name. */
  readonly function: string;
  readonly sample_bytes: number;
}

interface GivenSample {
  readonly body: Uint8Array;
  readonly headers: Readonly<Record<string, string>>;
  readonly message: { readonly key: Uint8Array };
}

/** Runs in this process, without a database. */
export async function previewHere(
  text: string,
  sample: GivenSample,
  config: Config,
): Promise<FunctionTestResult> {
  const [{ preview }, { preparing }, { idleSandbox, sandboxLimits }] = await Promise.all([
    import('@gateway/ingest/requests/preview'),
    import('@gateway/ingest/requests/prepare'),
    import('@gateway/ingest/transform/sandboxes'),
  ]);
  const sandbox = idleSandbox({ ...sandboxLimits(config), processes: 1 });
  try {
    const prepare = preparing({ sandbox, maxMessageBytes: config.ingest.max_message_bytes });
    const { kind, results, logs, durationMs, refusal } = await preview(text, sample, prepare);
    return {
      outcome: kind === 'refused' ? 'quarantined' : kind,
      refusal: withLine(refusal),
      duration_ms: durationMs,
      log: logs,
      result_count: results.length,
      results: results.map(({ json, event, refusal: refused }) => ({
        payload: JSON.parse(json) as unknown,
        refusal: withLine(refused),
        notes: JSON.parse(event?.notes ?? '[]') as string[],
        route: null,
      })),
    };
  } finally {
    await sandbox.close();
  }
}

/** Adds the line of the function that the reason names. */
function withLine(refusal: { readonly code: string; readonly reason: string } | null) {
  if (!refusal) return null;
  const [, line] = /on line (\d+)/.exec(refusal.reason) ?? [];
  return { ...refusal, line: line === undefined ? null : Number(line) };
}

/**
 * Safe to print on a terminal.
 *
 * @param text the function
 */
export function previewText(preview: FunctionPreview, text: string): string {
  const { outcome, refusal, results, result_count: count, log, duration_ms: durationMs } = preview;
  const called =
    durationMs === null
      ? 'not called'
      : `called with ${preview.sample_bytes} bytes, ${durationMs.toFixed(1)} ms`;
  const lines = [
    `${escapeLine(preview.function)}: ${called}`,
    ...log.map((line) => `console: ${escapeLine(line)}`),
  ];
  for (const at of results.keys()) lines.push('', ...resultLines(preview, at));
  if (count > results.length) lines.push('', `${count - results.length} more results`);
  lines.push('');
  if (outcome === 'accepted') lines.push(acceptedLine(preview));
  if (outcome === 'dropped')
    lines.push('It would be dropped by the function: acknowledged and counted, but not stored.');
  if (refusal) {
    const { code, reason, line } = refusal;
    lines.push(`It would be quarantined: ${code}`, `${INDENT}${escapeLine(reason)}`);
    const quoted =
      code.startsWith('transform_') && line !== null ? text.split('\n')[line - 1] : undefined;
    if (quoted !== undefined) lines.push(`${INDENT}${line} | ${escapeLine(quoted, 200)}`);
  }
  return lines.join('\n');
}

function resultLines({ results, result_count: count }: FunctionPreview, at: number): string[] {
  const { payload, refusal, notes, route } = results[at]!;
  const text = escapeTerminal(JSON.stringify(payload, null, 2));
  const more =
    text.length > RESULT_CHARS
      ? [`… ${text.length - RESULT_CHARS} more characters; --json has all`]
      : [];
  const lines = [...clip(text, RESULT_CHARS, '').split('\n'), ...more];
  if (refusal) lines.push(`refused: ${escapeLine(refusal.reason)}`);
  lines.push(...notes.map((note) => `note: ${note}`));
  if (route)
    lines.push(targetsText(route), ...mismatchLines(route).map((line) => `not by ${line}`));
  return [
    count > 1 ? `result ${at + 1} of ${count}` : 'result',
    ...lines.map((line) => INDENT + line),
  ];
}

function acceptedLine({ results, result_count: count }: FunctionPreview): string {
  const types = results.map(({ payload }) => (payload as { event_type?: unknown }).event_type);
  const named = [...new Set(types)].slice(0, 10).join(', ');
  return `It would be accepted as ${count === 1 ? 'one event' : `${count} events`}: ${escapeLine(named, 400)}.`;
}

type TestedRoute = NonNullable<FunctionTestResult['results'][number]['route']>;

/** One line, such as `would go to 2 endpoints: shop, archive`. */
function targetsText({
  endpoint_count: count,
  endpoints,
  sentence,
  subscriptions,
}: TestedRoute): string {
  if (count === 0) return `would go nowhere. ${sentence}`;
  const names = new Map(subscriptions.map(({ uid, name }) => [uid, name]));
  const named = endpoints.slice(0, NAMED_MAX).map(({ name, subscription_id: id }) => {
    const by = id === null ? '' : ` by the subscription ${escapeLine(names.get(id) ?? id, 100)}`;
    return escapeLine(name, 100) + by;
  });
  const more = count > named.length ? [`${count - named.length} more`] : [];
  return `would go to ${counted(count, 'endpoint')}: ${[...named, ...more].join(', ')}`;
}

/**
 * One line for each of the first 50 subscriptions that do not match, and one line that counts the
 * rest.
 */
function mismatchLines({ subscriptions }: TestedRoute): string[] {
  const missed = subscriptions.flatMap(({ name, mismatch }) =>
    mismatch ? [`${escapeLine(name, 100)}: ${escapeLine(mismatch.sentence)}`] : [],
  );
  const more =
    missed.length > NAMED_MAX ? [`${missed.length - NAMED_MAX} more; --json has all`] : [];
  return [...missed.slice(0, NAMED_MAX), ...more];
}
