interface ApiResource {
  readonly about: string;
  /** Empty if it is only for sessions and portal links, which have no scopes. */
  readonly scopes: readonly ('read' | 'write')[];
  /** False if changes to the resource do not affect the routing of events. */
  readonly isRouting?: false;
}

const BOTH = ['read', 'write'] as const;

/** In the order of the OpenAPI document. Names are used for tags, client properties and scopes. */
export const RESOURCES: Readonly<Record<string, ApiResource>> = {
  auth: { about: 'Browser sessions of users.', scopes: [] },
  organisations: { about: 'Organisations, which own projects.', scopes: BOTH },
  members: { about: 'Members of an organisation and their roles.', scopes: BOTH },
  invitations: { about: 'Invitations to join an organisation.', scopes: BOTH },
  users: { about: 'The authenticated user.', scopes: BOTH },
  projects: {
    about: 'Projects, each with its own keys, endpoints, sources, events and settings.',
    scopes: BOTH,
  },
  summary: { about: 'The current backlog, failures and latency of a project.', scopes: ['read'] },
  health: {
    about: 'The health of a project, with its problems in order of severity.',
    scopes: ['read'],
  },
  activity: {
    about: 'Time series of events, deliveries and attempts, for charts.',
    scopes: ['read'],
  },
  apiKeys: { about: 'API keys of a project.', scopes: BOTH, isRouting: false },
  portalLinks: {
    about: 'Links to the portal, where owners see their endpoints and deliveries.',
    scopes: BOTH,
    isRouting: false,
  },
  portal: { about: 'The portal link that authenticates the request.', scopes: [] },
  auditLog: { about: 'The history of changes, with who made them.', scopes: ['read'] },
  endpoints: { about: 'URLs that receive events, with their delivery settings.', scopes: BOTH },
  subscriptions: { about: 'Rules that select the events an endpoint receives.', scopes: BOTH },
  sources: { about: 'Queues, topics and URLs that provide events.', scopes: BOTH },
  eventTypes: { about: 'Types of events, with their schemas.', scopes: BOTH },
  events: {
    about: 'Events created over the API or accepted from a source.',
    scopes: BOTH,
    isRouting: false,
  },
  scheduledEvents: {
    about: 'Events that are delivered at a later time.',
    scopes: BOTH,
    isRouting: false,
  },
  eventDeliveries: {
    about: 'Deliveries of events to endpoints, with their attempts.',
    scopes: BOTH,
    isRouting: false,
  },
  issues: {
    about: 'Failures of endpoints, grouped by kind of error.',
    scopes: BOTH,
    isRouting: false,
  },
  quarantine: { about: 'Messages that were not accepted.', scopes: BOTH, isRouting: false },
  instance: {
    about:
      'Plugins, feature flags, licence, settings, usage and health of the instance, for its operator.',
    scopes: ['read'],
  },
  shards: {
    about: 'Databases and schemas with the events of projects, for the operator.',
    scopes: BOTH,
    isRouting: false,
  },
};

export const SCOPES: readonly string[] = Object.entries(RESOURCES).flatMap(([name, { scopes }]) =>
  scopes.map((it) => `${name}:${it}`),
);

const COMPOUND = {
  eventdeliveries: 'eventDeliveries',
  deliveryattempts: 'deliveryAttempts',
} as Readonly<Record<string, string>>;

export function camel(text: string): string {
  return (COMPOUND[text] ?? text).replaceAll(/[-_](\w)/g, (_, letter: string) =>
    letter.toUpperCase(),
  );
}
