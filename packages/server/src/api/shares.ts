import { GatewayError } from '@gateway/core/errors';

/** How many may wait for each that is worked on; a client that does not wait for its answers meets this. */
const WAITING_FACTOR = 100;

/** Frees what was taken. Call it once. */
export type Release = () => void;

/** Lets so many pieces of work of one owner run at a time. The others wait in turn, so that the work of other owners goes on beside. */
export class Shares {
  readonly #owners = new Map<string, { running: number; readonly waiting: (() => void)[] }>();

  /** @param setting named when too many wait */
  constructor(
    private readonly most: number,
    private readonly setting: string,
  ) {}

  /** Resolves when work of this owner may begin. @throws GatewayError `too_many_at_once` when too much of it waits */
  async take(owner: string): Promise<Release> {
    let its = this.#owners.get(owner);
    if (!its) this.#owners.set(owner, (its = { running: 0, waiting: [] }));
    const { waiting } = its;
    if (its.running < this.most) its.running++;
    else if (waiting.length < WAITING_FACTOR * this.most) await new Promise<void>((resolve) => waiting.push(resolve));
    else throw new GatewayError('too_many_at_once', { limit: this.most, setting: this.setting, retryAfterSeconds: 1 });
    return () => this.#release(owner);
  }

  #release(owner: string): void {
    const its = this.#owners.get(owner)!;
    const next = its.waiting.shift();
    // Its place goes on to the next.
    if (next) next();
    else if (--its.running === 0) this.#owners.delete(owner);
  }
}

/** A body of more bytes takes the process some milliseconds. */
export const LARGE_BYTES = 65_536;
/** A grouped request holds no connection of its own. */
const GROUPED_FACTOR = 32;

/** Takes the share of an owner for a request: those with large bodies get a quarter, those that commit together many times as much. */
export type TakeShare = (owner: string, options: { readonly bytes: number; readonly isGrouped: boolean }) => Promise<Release>;

/** @param most requests of an owner at a time: `server.project_concurrency` */
export function requestShares(most: number): TakeShare {
  const shareOf = (count: number) => new Shares(count, 'server.project_concurrency');
  const [single, large, grouped] = [shareOf(most), shareOf(Math.ceil(most / 4)), shareOf(most * GROUPED_FACTOR)];
  return (owner, { bytes, isGrouped }) => (bytes > LARGE_BYTES ? large : isGrouped ? grouped : single).take(owner);
}
