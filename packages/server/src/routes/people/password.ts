import { GatewayError } from '@gateway/core/errors';
import { FairQueue } from '@gateway/core/queue';
import { networkOf } from '@gateway/core/http';
import { findUserByPassword, hashPassword } from '@gateway/store/people';
import { Type, type OpenCall } from '../../api/vocabulary.js';

// Only the length of a password is checked, as NIST recommends:
// https://pages.nist.gov/800-63-4/sp800-63b.html#password
export const Password = Type.String({
  minLength: 12,
  maxLength: 1024,
  description: 'At least 12 characters.',
});

/** Waiting turns, per owner and in total. */
const OWN_MAX = 4;
const WAITING_MAX = 200;
/** The route must respond before its own time limit. */
const WAIT_MAX_MS = 20_000;

interface Turn {
  readonly sinceMs: number;
  start(error?: GatewayError): void;
}

/**
 * A hash takes 128 MB and half a second of a core, so only one runs at a time. Known devices have
 * priority, and owners take turns.
 */
const [known, others] = [new FairQueue<Turn>(), new FairQueue<Turn>()];
let isRunning = false;

/**
 * Throws `too_many_passwords` if too many turns are waiting or the wait is too long.
 * @param email the account's email address
 */
export async function withPasswordTurn<Result>(
  {
    request,
    addressOf,
    auth,
  }: Pick<OpenCall, 'request' | 'addressOf'> & {
    readonly auth: Pick<OpenCall['auth'], 'sessions'>;
  },
  email: string,
  work: () => Promise<Result>,
): Promise<Result> {
  const isKnown = auth.sessions.isKnownDevice(request, email);
  await untilTurn(
    isKnown ? known : others,
    isKnown ? email.toLowerCase() : networkOf(addressOf(request)),
  );
  try {
    return await work();
  } finally {
    isRunning = false;
    next();
  }
}

/**
 * Throws `too_many_passwords` if no turn is free in time, or `too_many_logins` if the client could
 * be guessing.
 */
export function userByPassword(call: OpenCall, email: string, password: string) {
  const account = {
    kind: 'password',
    name: email.toLowerCase(),
    credential: `${email}\n${password}`,
  } as const;
  const { database, auth, request } = call;
  return auth.logins.check(request, account, () =>
    withPasswordTurn(call, email, () => findUserByPassword(database.knex, email, password)),
  );
}

/** Throws `too_many_passwords` if no turn is free in time. */
export function hashedPassword(call: OpenCall, email: string, password: string): Promise<string> {
  return withPasswordTurn(call, email, () => hashPassword(password));
}

/** @param owner the client's network, or the account of a known device */
function untilTurn(queue: FairQueue<Turn>, owner: string): Promise<void> {
  if (queue.sizeOf(owner) >= OWN_MAX || queue.size >= WAITING_MAX) throw busy();
  return new Promise((resolve, reject) => {
    queue.push(owner, {
      sinceMs: performance.now(),
      start: (error) => (error ? reject(error) : resolve()),
    });
    next();
  });
}

function next(): void {
  while (!isRunning) {
    const [turn] = known.size > 0 ? known.take(1) : others.take(1);
    if (!turn) return;
    isRunning = performance.now() - turn.sinceMs <= WAIT_MAX_MS;
    turn.start(isRunning ? undefined : busy());
  }
}

const busy = () => new GatewayError('too_many_passwords', { retryAfterSeconds: 2 });
