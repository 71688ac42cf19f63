import type { ChangedApiKey, CreateApiKey, PersonalKey, Scope } from '@gateway/client';
import type { List } from '../../api/read.js';

/** For a project or a user. */
export interface KeyRing {
  readonly label: string;
  /** The permissions of a key without a role. */
  readonly everything: string;
  /** `''` means none. */
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

/**
 * For the API. `choice` is in days from now, `custom` for `time` in the browser's time zone, or
 * `''` for never, which becomes null. An invalid time is returned unchanged, so that the API
 * reports it.
 */
export function expiryOf(choice: string, time: string, nowMs = Date.now()): string | null {
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

const BOTH = ['read', 'write'] as const;
const READ = ['read'] as const;

interface ScopeChoice<Name extends ScopedResource> {
  readonly label: string;
  readonly choices: Name extends ResourceOf<Scope, 'write'> ? typeof BOTH : typeof READ;
  /** Project API keys can access the resource too. */
  readonly isOfProject: boolean;
}

/** The most used resources first. */
const RESOURCES: { readonly [Name in ScopedResource]: ScopeChoice<Name> } = {
  events: { label: 'Events', choices: BOTH, isOfProject: true },
  eventDeliveries: { label: 'Deliveries', choices: BOTH, isOfProject: true },
  issues: { label: 'Issues', choices: BOTH, isOfProject: true },
  endpoints: { label: 'Endpoints', choices: BOTH, isOfProject: true },
  subscriptions: { label: 'Subscriptions', choices: BOTH, isOfProject: true },
  sources: { label: 'Sources', choices: BOTH, isOfProject: true },
  eventTypes: { label: 'Event types', choices: BOTH, isOfProject: true },
  quarantine: { label: 'Quarantine', choices: BOTH, isOfProject: true },
  portalLinks: { label: 'Portal links', choices: BOTH, isOfProject: true },
  notificationChannels: { label: 'Notification channels', choices: BOTH, isOfProject: true },
  projects: { label: 'Project settings', choices: BOTH, isOfProject: true },
  summary: { label: 'Summary', choices: READ, isOfProject: true },
  health: { label: 'Health', choices: READ, isOfProject: true },
  activity: { label: 'Activity', choices: READ, isOfProject: true },
  apiKeys: { label: 'API keys', choices: BOTH, isOfProject: false },
  organisations: { label: 'Organisations', choices: BOTH, isOfProject: false },
  members: { label: 'Members', choices: BOTH, isOfProject: false },
  invitations: { label: 'Invitations', choices: BOTH, isOfProject: false },
  auditLog: { label: 'Audit log', choices: READ, isOfProject: false },
  users: { label: 'Your account', choices: BOTH, isOfProject: false },
  instance: { label: 'Instance', choices: READ, isOfProject: false },
  shards: { label: 'Shards', choices: BOTH, isOfProject: false },
};

export const ALL_RESOURCES = Object.keys(RESOURCES) as ScopedResource[];
export const PROJECT_RESOURCES = ALL_RESOURCES.filter((name) => RESOURCES[name].isOfProject);

export function labelOf(resource: ScopedResource): string {
  return RESOURCES[resource].label;
}

/** `''` means none. */
export function choicesOf(resource: ScopedResource): [choice: string, label: string][] {
  return [
    ['', 'none'],
    ...RESOURCES[resource].choices.map((it): [string, string] => [
      it,
      it === 'write' ? 'read and write' : it,
    ]),
  ];
}

/** The widest access that the scopes grant, or `''` for none. */
export function chosenOf(scopes: readonly Scope[], resource: ScopedResource): string {
  return (
    RESOURCES[resource].choices.findLast((it) => scopes.includes(`${resource}:${it}` as Scope)) ??
    ''
  );
}

export function withChoice(
  scopes: readonly Scope[],
  resource: ScopedResource,
  choice: string,
): Scope[] {
  const others = scopes.filter((it) => !it.startsWith(`${resource}:`));
  return choice === '' ? others : [...others, `${resource}:${choice}` as Scope];
}
