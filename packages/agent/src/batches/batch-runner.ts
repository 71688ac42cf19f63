import { newId } from '@gateway/core/events';
import type { AttemptRecord } from '@gateway/store/deliveries';
import type { AttemptRunner } from '../attempt/run-attempt.js';
import type { AgentContext } from '../config/agent-context.js';
import type { Attempt } from '../model/delivery.js';
import type { Destination, NotSent } from '../model/destination.js';
import { outcomesOf } from './batch-answer.js';
import { BATCH_TYPE, batchBody, requestsOf } from './batch-body.js';

interface BatchRunnerOptions extends Pick<AgentContext, 'clock'> {
  readonly destination: Pick<Destination, 'send'>;
  readonly attempts: Pick<AttemptRunner, 'prepare' | 'begin' | 'end' | 'signal'>;
}

export type Settled = readonly [attempt: Attempt, result: AttemptRecord | NotSent];

/** Makes attempts of several deliveries of an endpoint with one request. */
export class BatchRunner {
  constructor(private readonly options: BatchRunnerOptions) {}

  /**
   * Never rejects. If functions have made the data larger than one request may be, sends several,
   * one after the other.
   */
  async run(attempts: readonly Attempt[]): Promise<Settled[]> {
    const prepared = await Promise.all(
      attempts.map(async (attempt) => this.options.attempts.prepare(attempt)),
    );
    const settled: Settled[] = [];
    const left: Attempt[] = [];
    attempts.forEach((attempt, k) => {
      const result = prepared[k];
      if (result) settled.push([attempt, result]);
      else left.push(attempt);
    });
    for (const request of requestsOf(left, attempts[0]!.endpoint.batch!.max_bytes))
      settled.push(...(await this.#send(request)));
    return settled;
  }

  async #send(request: readonly Attempt[]): Promise<Settled[]> {
    const { destination, attempts, clock } = this.options;
    const sinceMs = performance.now();
    for (const attempt of request) attempts.begin(attempt);
    const [{ endpoint, delivery: first }] = request as [Attempt];
    const id = newId(clock.now());
    const delivery = {
      ...first,
      id,
      headers: { 'content-type': BATCH_TYPE },
      body: batchBody(request),
    };
    const answer = await destination.send(
      { endpoint, delivery, trace: undefined },
      attempts.signal,
    );
    if (answer.outcome === 'unsent') return request.map((attempt) => [attempt, answer]);
    const ids = request.map((attempt) => attempt.delivery.id);
    return outcomesOf(answer, id, ids).map((outcome, k) => {
      const attempt = request[k]!;
      return [attempt, attempts.end(attempt, outcome, sinceMs)];
    });
  }
}
