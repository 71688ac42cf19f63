import type { RetryOutcome, RetryProject, RetryTally } from '@gateway/store/deliveries';
import { answerTable, type Column } from '../output/table.js';
import { escapeLine } from '../output/escape-terminal.js';
import type { RetryRequest } from './selection.js';

/** What `gateway retry` has done so far, or would do. */
export class RetryResult {
  readonly #tallies = new Map<string, RetryTally>();

  add(tallies: readonly RetryTally[]): void {
    for (const tally of tallies) {
      const key = `${tally.projectId} ${tally.endpointId} ${tally.outcome}`;
      this.#tallies.set(key, { ...tally, count: tally.count + (this.#tallies.get(key)?.count ?? 0) });
    }
  }

  /** Deliveries that came to one of these outcomes. */
  count(...outcomes: readonly RetryOutcome[]): number {
    return [...this.#tallies.values()].reduce((sum, it) => sum + (outcomes.includes(it.outcome) ? it.count : 0), 0);
  }

  /** By endpoint and outcome, the most first. */
  get tallies(): readonly RetryTally[] {
    return [...this.#tallies.values()].sort((a, b) => b.count - a.count);
  }
}

/** `1,234 event deliveries`. */
export function deliveries(count: number): string {
  return `${count.toLocaleString('en-US')} event ${count === 1 ? 'delivery' : 'deliveries'}`;
}

/** What is to be known beside the number of those that are due: one sentence for each thing. */
export function remarks(result: RetryResult): string[] {
  const about: readonly [RetryOutcome, string][] = [
    ['held', 'held until the endpoint is no longer paused'],
    ['inactive', 'skipped: the endpoint is inactive; activate it first'],
    ['deleted', 'skipped: the endpoint was deleted'],
    ['waiting', 'skipped: waiting for an agent already, or for the paused endpoint'],
  ];
  return about.flatMap(([outcome, words]) => {
    const count = result.count(outcome);
    return count === 0 ? [] : [`${deliveries(count)} ${words}`];
  });
}

const TABLE_ROWS = 20;
const NAME_CHARS = 40;
const WORDS: Readonly<Record<RetryOutcome, string>> = {
  due: 're-queued',
  held: 'held, the endpoint is paused',
  inactive: 'skipped, the endpoint is inactive',
  deleted: 'skipped, the endpoint was deleted',
  waiting: 'skipped, waiting already',
};

/** The result by project and endpoint as a table; empty when there is but one line to show. */
export function resultTable(result: RetryResult, projects: readonly RetryProject[]): string {
  const { tallies } = result;
  if (tallies.length < 2) return '';
  const names = new Map(projects.map(({ id, name }) => [id, name]));
  const columns: readonly Column<RetryTally>[] = [
    ['PROJECT', ({ projectId }) => escapeLine(names.get(projectId) ?? projectId, NAME_CHARS)],
    ['ENDPOINT', ({ endpointName, endpointId }) => escapeLine(endpointName ?? endpointId, NAME_CHARS)],
    ['DELIVERIES', ({ count }) => count.toLocaleString('en-US')],
    ['OUTCOME', ({ outcome }) => WORDS[outcome]],
  ];
  const more = tallies.length - TABLE_ROWS;
  const table = answerTable(tallies.slice(0, TABLE_ROWS), columns, { json: false });
  return more > 0 ? `${table}\n… and ${more} more lines; --json shows all` : table;
}

/** The result for a program. */
export function resultRecord(
  result: RetryResult,
  { request, projects, dryRun, stopped }: { request: RetryRequest; projects: readonly RetryProject[]; dryRun: boolean; stopped: boolean },
): object {
  const names = new Map(projects.map(({ id, name }) => [id, name]));
  return {
    status: request.status,
    from: request.from.toISOString(),
    dry_run: dryRun,
    stopped,
    requeued: result.count('due', 'held'),
    held: result.count('held'),
    skipped: { inactive: result.count('inactive'), deleted: result.count('deleted'), waiting: result.count('waiting') },
    endpoints: result.tallies.map(({ projectId, endpointId, endpointName, outcome, count }) => ({
      project_id: projectId,
      project_name: names.get(projectId) ?? null,
      endpoint_id: endpointId,
      endpoint_name: endpointName,
      outcome,
      deliveries: count,
    })),
  };
}
