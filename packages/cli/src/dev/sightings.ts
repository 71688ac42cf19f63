import type { Problem } from './problem.js';
import type { Message, Outcome } from './observe.js';

/** A message that was waited for, as the sources saw it. Times in epoch milliseconds. */
export interface Sighting {
  /** When it was read. */
  readonly read: Promise<{ readonly at: number; readonly message: Message; readonly source: string }>;
  /** When it was settled, and how. */
  readonly settled: Promise<{ readonly at: number; readonly outcome: Outcome }>;
}

/** Finds messages among those that the sources read, by their bytes. */
export class Sightings {
  #wanted: { body: Buffer; onRead: (source: string, message: Message) => (outcome: Outcome) => void } | undefined;

  /** Looks out for the next message with this body. */
  expect(body: string): Sighting {
    let settle: (it: { at: number; outcome: Outcome }) => void = () => undefined;
    const settled = new Promise<{ at: number; outcome: Outcome }>((resolve) => (settle = resolve));
    const read = new Promise<{ at: number; message: Message; source: string }>((resolve) => {
      const onRead = (source: string, message: Message) => {
        resolve({ at: Date.now(), message, source });
        return (outcome: Outcome) => settle({ at: Date.now(), outcome });
      };
      this.#wanted = { body: Buffer.from(body), onRead };
    });
    return { read, settled };
  }

  /** Is told of every message; returns what is to be told its outcome. */
  see(source: string, message: Message): ((outcome: Outcome) => void) | undefined {
    const wanted = this.#wanted;
    if (!wanted?.body.equals(message.body)) return undefined;
    this.#wanted = undefined;
    return wanted.onRead(source, message);
  }
}

/** A promise with a deadline in epoch milliseconds; `late` makes the error when it has passed. */
export async function by<T>(deadline: number, promise: Promise<T>, late: () => Promise<Problem>): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const over = new Promise<undefined>((resolve) => (timer = setTimeout(resolve, Math.max(0, deadline - Date.now()), undefined)));
  const found = await Promise.race([promise.then((value) => ({ value })), over]);
  clearTimeout(timer);
  if (found) return found.value;
  throw await late();
}
