import type { ChangedApiKey, CreateApiKey, PersonalKey, Scope } from '@gateway/client';
import type { List } from '../../api/index.js';

/** For a project or a user. */
export interface KeyRing {
  readonly label: string;
  readonly everything: string;
  readonly roles: readonly (readonly [role: string, label: string])[];
  readonly resources: readonly ScopedResource[];
  readonly list: List<PersonalKey>;
  readonly create: (key: CreateApiKey) => Promise<{ readonly key: string }>;
  readonly update: (id: string, changes: ChangedApiKey) => Promise<unknown>;
  readonly revoke: (id: string) => Promise<unknown>;
  readonly mayChange: boolean;
}

type KeyState = 'active' | 'expired' | 'revoked';

export type Ending = Pick<PersonalKey, 'expires_at' | 'revoked_at'>;

export function stateOf(
  { expires_at: expires, revoked_at: revoked }: Ending,
  nowMs = Date.now(),
): KeyState {
  if (revoked) return 'revoked';
  return expires && new Date(expires).getTime() <= nowMs ? 'expired' : 'active';
}

/** Days from now. The first is the default. */
export const EXPIRIES = [
  ['90', 'In 90 days'],
  ['30', 'In 30 days'],
  ['365', 'In a year'],
  ['custom', 'Custom…'],
  ['', 'Never'],
] as const;

/** The API limits portal links to a year. */
export const LINK_EXPIRIES = [
  ['1', 'In a day'],
  ['7', 'In 7 days'],
  ['30', 'In 30 days'],
  ['365', 'In a year'],
  ['custom', 'Custom…'],
] as const;

/** `choice` is in days from now, `''` for never, or `custom` for `time` in the browser's zone. */
export interface Expiry {
  readonly choice: string;
  readonly time: string;
}

export function newExpiry([[choice]]: typeof EXPIRIES | typeof LINK_EXPIRIES): Expiry {
  return { choice, time: '' };
}

/** Null for never. An invalid time is returned unchanged, so that the API reports it. */
export function expiryOf({ choice, time }: Expiry, nowMs = Date.now()): string | null {
  if (choice === '') return null;
  const at = choice === 'custom' ? new Date(time) : new Date(nowMs + Number(choice) * 86_400_000);
  return Number.isNaN(at.getTime()) ? time : at.toISOString();
}

export const ROLES = [
  ['viewer', 'Viewer: read'],
  ['member', 'Member: read, change endpoints and sources, send events'],
] as const;

type ResourceOf<It extends Scope, Access extends string> = It extends `${infer Name}:${Access}`
  ? Name
  : never;
type ScopedResource = ResourceOf<Scope, 'read'>;

/** The most used resources first. */
const OF_PROJECT = {
  events: 'Events',
  eventDeliveries: 'Deliveries',
  scheduledEvents: 'Scheduled events',
  issues: 'Issues',
  endpoints: 'Endpoints',
  subscriptions: 'Subscriptions',
  sources: 'Sources',
  eventTypes: 'Event types',
  quarantine: 'Quarantine',
  portalLinks: 'Portal links',
  projects: 'Project settings',
  summary: 'Summary',
  health: 'Health',
  activity: 'Activity',
};
const LABELS: Readonly<Record<ScopedResource, string>> = {
  ...OF_PROJECT,
  apiKeys: 'API keys',
  organisations: 'Organisations',
  members: 'Members',
  invitations: 'Invitations',
  auditLog: 'Audit log',
  users: 'Your account',
  instance: 'Instance',
  shards: 'Shards',
};
const READ_ONLY: Readonly<Record<Exclude<ScopedResource, ResourceOf<Scope, 'write'>>, true>> = {
  summary: true,
  health: true,
  activity: true,
  auditLog: true,
  instance: true,
};

export const ALL_RESOURCES = Object.keys(LABELS) as ScopedResource[];
export const PROJECT_RESOURCES = Object.keys(OF_PROJECT) as ScopedResource[];

export function labelOf(resource: ScopedResource): string {
  return LABELS[resource];
}

export function choicesOf(resource: ScopedResource): readonly (readonly [string, string])[] {
  const write = ['write', 'read and write'] as const;
  return [['', 'none'], ['read', 'read'], ...(resource in READ_ONLY ? [] : [write])];
}

/** The widest access that the scopes grant, or `''` for none. */
export function chosenOf(scopes: readonly Scope[], resource: ScopedResource): string {
  return ['write', 'read'].find((it) => scopes.includes(`${resource}:${it}` as Scope)) ?? '';
}

export function withChoice(
  scopes: readonly Scope[],
  resource: ScopedResource,
  choice: string,
): Scope[] {
  const others = scopes.filter((it) => !it.startsWith(`${resource}:`));
  return choice === '' ? others : [...others, `${resource}:${choice}` as Scope];
}
