import type { Database } from '../../support/database.js';
import type { Journal } from './journal.js';
import { readLedger } from './ledger.js';
import { messageLines } from './message-lines.js';
import { requestLines } from './request-lines.js';
import { rowLines } from './row-lines.js';

/** What the brokers know when a run is over. */
export interface Offsets {
  /** Of each partition: the offset that the consumer group has committed (-1: none), and the one behind the last message. */
  readonly kafka: readonly { readonly topic: string; readonly partition: number; readonly committed: number; readonly end: number }[];
  /** Messages that the queue still has: waiting, or out with a reader. */
  readonly sqs: { readonly ready: number; readonly inFlight: number };
}

/** A run that is over and at rest: what those outside saw, and what Postgres and the brokers say of it. */
export interface Witnesses {
  readonly journal: Journal;
  /** Runs a statement in the gateway's database. */
  readonly rows: Database['rows'];
  offsets(): Promise<Offsets>;
}

/** A promise, what it asks for, and what was found. */
export interface Line {
  readonly what: string;
  readonly expected: string;
  /** Names the first few that are wrong. */
  readonly found: string;
  readonly ok: boolean;
}

export interface Report {
  readonly lines: readonly Line[];
  /** Every line is in order. */
  readonly isBalanced: boolean;
}

/**
 * Balances the report of a run: compares what was produced and what arrived with what Postgres and the brokers say. Judges by what stands there at this
 * moment, so everything has to be at rest: brokers and stores back, agents alive, nothing on its way.
 */
export async function reconcile({ journal, rows, offsets }: Witnesses): Promise<Report> {
  // Before Postgres: whatever was acknowledged by then has to be there.
  const brokers = await offsets();
  const ledger = await readLedger(rows);
  const lines = [...messageLines(journal, ledger), ...requestLines(journal, ledger), ...rowLines(brokers, ledger)];
  return { lines, isBalanced: lines.every(({ ok }) => ok) };
}
