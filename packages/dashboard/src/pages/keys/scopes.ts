import type { Scope } from '@gateway/client';

type ResourceOf<It extends Scope, Access extends string> = It extends `${infer Name}:${Access}`
  ? Name
  : never;
export type Resource = ResourceOf<Scope, 'read'>;

const BOTH = ['read', 'write'] as const;
const READ = ['read'] as const;

interface Choice<Name extends Resource> {
  readonly label: string;
  readonly choices: Name extends ResourceOf<Scope, 'write'> ? typeof BOTH : typeof READ;
  /** True if keys of projects reach it too. */
  readonly isOfProject: boolean;
}

/** Every resource with scopes, the most frequently used ones first. */
const RESOURCES: { readonly [Name in Resource]: Choice<Name> } = {
  events: { label: 'Events', choices: BOTH, isOfProject: true },
  eventDeliveries: { label: 'Deliveries', choices: BOTH, isOfProject: true },
  endpoints: { label: 'Endpoints', choices: BOTH, isOfProject: true },
  subscriptions: { label: 'Subscriptions', choices: BOTH, isOfProject: true },
  sources: { label: 'Sources', choices: BOTH, isOfProject: true },
  eventTypes: { label: 'Event types', choices: BOTH, isOfProject: true },
  quarantine: { label: 'Quarantine', choices: BOTH, isOfProject: true },
  portalLinks: { label: 'Portal links', choices: BOTH, isOfProject: true },
  projects: { label: 'Project settings', choices: BOTH, isOfProject: true },
  summary: { label: 'Summary', choices: READ, isOfProject: true },
  activity: { label: 'Activity', choices: READ, isOfProject: true },
  apiKeys: { label: 'API keys', choices: BOTH, isOfProject: false },
  organisations: { label: 'Organisations', choices: BOTH, isOfProject: false },
  members: { label: 'Members', choices: BOTH, isOfProject: false },
  invitations: { label: 'Invitations', choices: BOTH, isOfProject: false },
  auditLog: { label: 'Audit log', choices: READ, isOfProject: false },
  users: { label: 'Your account', choices: BOTH, isOfProject: false },
  instance: { label: 'Instance', choices: READ, isOfProject: false },
};

export const ALL_RESOURCES = Object.keys(RESOURCES) as Resource[];
export const PROJECT_RESOURCES = ALL_RESOURCES.filter((name) => RESOURCES[name].isOfProject);

export function labelOf(resource: Resource): string {
  return RESOURCES[resource].label;
}

/** The accesses of a resource with their labels; `''` is none. */
export function choicesOf(resource: Resource): [choice: string, label: string][] {
  return [
    ['', 'none'],
    ...RESOURCES[resource].choices.map((it): [string, string] => [
      it,
      it === 'write' ? 'read and write' : it,
    ]),
  ];
}

/** The widest access that the scopes grant to a resource. */
export function chosenOf(scopes: readonly Scope[], resource: Resource): string {
  return (
    RESOURCES[resource].choices.findLast((it) => scopes.includes(`${resource}:${it}` as Scope)) ??
    ''
  );
}

export function withChoice(scopes: readonly Scope[], resource: Resource, choice: string): Scope[] {
  const others = scopes.filter((it) => !it.startsWith(`${resource}:`));
  return choice === '' ? others : [...others, `${resource}:${choice}` as Scope];
}
