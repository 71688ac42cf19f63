// @ts-check
import { routingOutcomes } from '#core/routing/outcomes';
import { rejectCodes } from '#ingest/validate/reject-codes';
import { errors } from '#core/errors/error-table';
import { code, MADE, table } from './markdown.mjs';

/** Generates the page of error codes, reject codes and routing outcomes. */
export function errorsPage() {
  return [
    '# Errors',
    MADE,
    'Every known error has a code. Parts in braces are filled in.',
    `## Errors of commands and of the API

A command prints the sentence and the fix, and exits with 1 for a failure or 2 for wrong usage. The API answers with the HTTP status and
\`{ "status": false, "message", "data": null, "code", "fix" }\`. Answers of status 500 have a request id instead of the reason, which is in the server log.
Codes of inactive plugins begin with \`plugin_\` or \`metrics_\`; they affect nothing else.`,
    table(['Code', 'Sentence', 'Fix', 'Exit', 'HTTP'], Object.entries(errors).map(errorRow)),
    `## Reasons for quarantine

Codes of quarantined messages. Each message also has a sentence with the place and what to change.`,
    table(
      ['Code', 'Meaning'],
      Object.entries(rejectCodes).map(([name, meaning]) => [code(name), meaning]),
    ),
    `## Outcomes of events

An event is \`pending\` and has no outcome until it is routed.`,
    table(
      ['Outcome', 'Status', 'Meaning'],
      Object.entries(routingOutcomes).map(([name, { status, sentence }]) => [
        code(name),
        code(status),
        sentence,
      ]),
    ),
  ]
    .join('\n\n')
    .concat('\n');
}

/**
 * @param {[string, { exit: number, http: number, message: (details: never) => string, fix:
 * (details: never) => string }]} entry
 */
function errorRow([name, { exit, http, message, fix }]) {
  const details = /** @type {never} */ (anyDetails());
  return [code(name), message(details), fix(details), String(exit), String(http)];
}

/**
 * Returns details for any error: each value is its name in braces. Lists have one element, for
 * sentences in the singular.
 */
function anyDetails() {
  /** @type {Readonly<Record<string, unknown>>} */
  const lists = {
    problems: [{ field: '{field}', sentence: '{problem}' }],
    pending: ['{migration}'],
    unknown: ['{migration}'],
    migrations: ['{migration}'],
    tables: ['{table}'],
    holders: ['{session}'],
    names: ['{name}'],
    ids: ['{id}'],
    gates: [
      { reason: '{gate}', fix: '{fix}' },
      { reason: '{gate}', fix: '{fix}' },
    ],
    hint: '',
  };
  return new Proxy({}, { get: (_, name) => lists[String(name)] ?? `{${String(name)}}` });
}
