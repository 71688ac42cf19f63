import type { Journal } from './journal.js';
import { readLedger, type Databases } from './ledger.js';
import { messageLines } from './message-lines.js';
import { requestLines } from './request-lines.js';
import { rowLines } from './row-lines.js';

/** The brokers' state at the end of a run. */
export interface Offsets {
  /**
   * Per partition: the group's committed offset (-1 without one) and the offset after the last
   * message.
   */
  readonly kafka: readonly {
    readonly topic: string;
    readonly partition: number;
    readonly committed: number;
    readonly end: number;
  }[];
  /** Messages still in the queue: waiting, or received by a reader. */
  readonly sqs: { readonly ready: number; readonly inFlight: number };
}

/**
 * The sources of evidence about a finished run: external observations, Postgres and the brokers.
 */
export interface Witnesses extends Databases {
  readonly journal: Journal;
  offsets(): Promise<Offsets>;
}

/** A guarantee, its expectation and the findings. */
export interface Line {
  readonly what: string;
  readonly expected: string;
  /** Includes the first few violations. */
  readonly found: string;
  readonly ok: boolean;
}

export interface Report {
  readonly lines: readonly Line[];
  readonly isBalanced: boolean;
}

/**
 * Compares the produced and received messages with Postgres and the brokers. Judges the current
 * state, so everything must be at rest: brokers and stores back, agents alive, nothing in flight.
 */
export async function reconcile({ journal, offsets, ...databases }: Witnesses): Promise<Report> {
  // Read before Postgres: anything acknowledged by now must be there.
  const brokers = await offsets();
  const ledger = await readLedger(databases);
  const lines = [
    ...messageLines(journal, ledger),
    ...requestLines(journal, ledger),
    ...rowLines(brokers, ledger),
  ];
  return { lines, isBalanced: lines.every(({ ok }) => ok) };
}
