import type { ChangedApiKey, NewApiKey, PersonalKey } from '@gateway/client';
import type { List } from '../../api/use-list.js';
import type { Resource } from './scopes.js';

/** What is done with the keys of a project, or of a person. */
export interface KeyRing {
  /** For headings: `API keys`. */
  readonly label: string;
  /** What a key without a role may do. */
  readonly everything: string;
  /** Roles of new keys with their descriptions; the empty one is none. */
  readonly roles: readonly (readonly [role: string, label: string])[];
  /** What its keys may have scopes for. */
  readonly resources: readonly Resource[];
  readonly list: List<PersonalKey>;
  readonly create: (key: NewApiKey) => Promise<{ readonly key: string }>;
  readonly update: (id: string, changes: ChangedApiKey) => Promise<unknown>;
  readonly revoke: (id: string) => Promise<unknown>;
  /** Whether the user may create, change and revoke them. */
  readonly mayChange: boolean;
}

/** What a key or a portal link is good for now. */
export type KeyState = 'active' | 'expired' | 'revoked';

/** When it ends, or has ended. */
export type Ending = Pick<PersonalKey, 'expires_at' | 'revoked_at'>;

export function stateOf({ expires_at: expires, revoked_at: revoked }: Ending, nowMs = Date.now()): KeyState {
  if (revoked) return 'revoked';
  return expires && new Date(expires).getTime() <= nowMs ? 'expired' : 'active';
}

/** For the list of a form; the first is chosen. */
export const EXPIRIES = [
  ['90', 'In 90 days'],
  ['30', 'In 30 days'],
  ['365', 'In a year'],
  ['custom', 'At a time…'],
  ['', 'Never'],
] as const;

/** The same for portal links: the API lets them last for a year at most. */
export const LINK_EXPIRIES = [
  ['1', 'In a day'],
  ['7', 'In 7 days'],
  ['30', 'In 30 days'],
  ['365', 'In a year'],
  ['custom', 'At a time…'],
] as const;

/** The time for the API: days from now, a time of the browser's zone, or null for never. What is no time stays, and the API says so. */
export function expiryOf(choice: string, time: string, nowMs = Date.now()): string | null {
  if (choice === '') return null;
  const at = choice === 'custom' ? new Date(time) : new Date(nowMs + Number(choice) * 86_400_000);
  return Number.isNaN(at.getTime()) ? time : at.toISOString();
}

/** What a new key may do, for the list of a form. */
export const ROLES = [
  ['viewer', 'read (viewer)'],
  ['member', 'read, change endpoints and sources, send events (member)'],
] as const;
