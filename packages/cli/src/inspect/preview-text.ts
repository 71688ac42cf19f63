import type { ExplainedRoute } from '@gateway/agent/inspect';
import { maskUrls } from '@gateway/core/logging';
import { escapeTerminal, escapeLine } from '../output/escape-terminal.js';
import type { RoutedPreview } from './preview.js';
import { mismatchLines, subscriptionRecord, targetsText } from './route-text.js';

/** What is shown of a result; `--json` has all of it. */
const RESULT_CHARS = 4_000;
const RESULTS_MAX = 20;
const INDENT = '  ';

/** A preview as JSON. */
export function previewRecord({ kind, name, sampleBytes, refusal, results, logs, durationMs, routes }: RoutedPreview): unknown {
  return {
    outcome: kind,
    function: name,
    sample_bytes: sampleBytes,
    duration_ms: durationMs,
    console: logs,
    refusal,
    results: results.map(({ json, refusal: refused }, at) => ({
      message: JSON.parse(json) as unknown,
      refusal: refused,
      ...(routes ? { route: routes[at] ? routeRecord(routes[at]) : null } : {}),
    })),
  };
}

function routeRecord({ rule, outcome, targets, subscriptions }: ExplainedRoute): unknown {
  const endpoints = targets.map(({ endpoint: { id: uid, name, url, status }, subscription }) => ({
    ...{ uid, name, url: maskUrls(url), status },
    subscription_id: subscription?.id ?? null,
  }));
  return { rule, outcome, endpoints, subscriptions: subscriptions.map(subscriptionRecord) };
}

/** A preview for a person, safe for a terminal. */
export function previewText(preview: RoutedPreview): string {
  const { name, kind, refusal, results, logs, durationMs, sampleBytes } = preview;
  const called = durationMs === null ? 'not called' : `called with ${sampleBytes} bytes, ${durationMs.toFixed(1)} ms`;
  const shown = results.slice(0, RESULTS_MAX).flatMap((_, at) => ['', ...resultLines(preview, at)]);
  const more = results.length > RESULTS_MAX ? ['', `${results.length - RESULTS_MAX} more results; --json has all`] : [];
  return [
    `${escapeLine(name)}: ${called}`,
    ...logs.map((line) => `console: ${escapeLine(line)}`),
    ...shown,
    ...more,
    '',
    ...(kind === 'accepted' ? acceptedLines(preview) : []),
    ...(kind === 'dropped' ? ['It would be dropped on purpose: acknowledged, counted, not kept.'] : []),
    ...(refusal
      ? [`It would be quarantined: ${refusal.code}`, `${INDENT}${escapeLine(refusal.reason)}`, ...lineOf(preview, refusal.reason)]
      : []),
  ].join('\n');
}

/** The line of the function that a reason names. */
function lineOf({ text, refusal }: RoutedPreview, reason: string): string[] {
  const [, number] = /on line (\d+)/.exec(reason) ?? [];
  const line = number && refusal?.code.startsWith('transform_') ? text.split('\n')[Number(number) - 1] : undefined;
  return line === undefined ? [] : [`${INDENT}${number} | ${escapeLine(line, 200)}`];
}

function resultLines({ results, routes }: RoutedPreview, at: number): string[] {
  const { json, refusal } = results[at]!;
  const route = routes?.[at];
  const text = escapeTerminal(JSON.stringify(JSON.parse(json), null, 2));
  const cut =
    text.length > RESULT_CHARS ? `${text.slice(0, RESULT_CHARS)}\n… ${text.length - RESULT_CHARS} more characters; --json has all` : text;
  return [
    ...(results.length > 1 ? [`result ${at + 1} of ${results.length}`] : ['result']),
    ...cut.split('\n').map((line) => INDENT + line),
    ...(refusal ? [`${INDENT}refused: ${escapeLine(refusal.reason)}`] : []),
    ...(route ? [`${INDENT}${targetsText(route)}`, ...mismatchLines(route.subscriptions).map((line) => `${INDENT}not by ${line}`)] : []),
  ];
}

function acceptedLines({ results }: RoutedPreview): string[] {
  const keys = results.flatMap(({ event }) => event?.idempotencyKey ?? []);
  const types = results.flatMap(({ event }) => event?.eventType ?? []);
  const named = [...new Set(types)].slice(0, 10).join(', ');
  const twice = keys.length > new Set(keys).size;
  return [
    `It would be accepted as ${results.length === 1 ? 'one event' : `${results.length} events`}: ${escapeLine(named, 400)}.`,
    ...(twice ? ['Some of them have the same idempotency_key: of each key only the first becomes an event.'] : []),
  ];
}
