import type { ChangedApiKey, NewApiKey, PersonalKey } from '@gateway/client';
import type { List } from '../../api/use-list.js';
import type { Resource } from './scopes.js';

/** The keys of a project or a user, and the operations on them. */
export interface KeyRing {
  readonly label: string;
  /** The permissions of a key without a role, in words. */
  readonly everything: string;
  /** Roles of new keys and their labels; `''` is no role. */
  readonly roles: readonly (readonly [role: string, label: string])[];
  readonly resources: readonly Resource[];
  readonly list: List<PersonalKey>;
  readonly create: (key: NewApiKey) => Promise<{ readonly key: string }>;
  readonly update: (id: string, changes: ChangedApiKey) => Promise<unknown>;
  readonly revoke: (id: string) => Promise<unknown>;
  readonly mayChange: boolean;
}

export type KeyState = 'active' | 'expired' | 'revoked';

export type Ending = Pick<PersonalKey, 'expires_at' | 'revoked_at'>;

export function stateOf(
  { expires_at: expires, revoked_at: revoked }: Ending,
  nowMs = Date.now(),
): KeyState {
  if (revoked) return 'revoked';
  return expires && new Date(expires).getTime() <= nowMs ? 'expired' : 'active';
}

/** Choices of a form; the first is preselected. */
export const EXPIRIES = [
  ['90', 'In 90 days'],
  ['30', 'In 30 days'],
  ['365', 'In a year'],
  ['custom', 'At a time…'],
  ['', 'Never'],
] as const;

/** Choices for portal links: the API limits them to a year. */
export const LINK_EXPIRIES = [
  ['1', 'In a day'],
  ['7', 'In 7 days'],
  ['30', 'In 30 days'],
  ['365', 'In a year'],
  ['custom', 'At a time…'],
] as const;

/**
 * Converts an expiry for the API: days from now, a time in the browser's zone, or null for never.
 * Returns an invalid time unchanged: the API reports it.
 */
export function expiryOf(choice: string, time: string, nowMs = Date.now()): string | null {
  if (choice === '') return null;
  const at = choice === 'custom' ? new Date(time) : new Date(nowMs + Number(choice) * 86_400_000);
  return Number.isNaN(at.getTime()) ? time : at.toISOString();
}

export const ROLES = [
  ['viewer', 'read (viewer)'],
  ['member', 'read, change endpoints and sources, send events (member)'],
] as const;
