interface ApiResource {
  readonly about: string;
  /**
   * The scopes that give access to the resource. Empty if it is only for sessions and portal links,
   * which have no scopes.
   */
  readonly scopes: readonly ('read' | 'write')[];
  /** False if changes to the resource do not affect the routing of events. */
  readonly isRouting?: false;
}

const BOTH = ['read', 'write'] as const;

/**
 * The API's resources, in the order of the OpenAPI document. Their names are used for tags, client
 * properties and scopes.
 */
export const RESOURCES: Readonly<Record<string, ApiResource>> = {
  auth: { about: 'Sessions of people in browsers.', scopes: [] },
  organisations: { about: 'Whom projects belong to.', scopes: BOTH },
  members: { about: 'Who belongs to an organisation, and the role of each.', scopes: BOTH },
  invitations: { about: 'To an organisation.', scopes: BOTH },
  users: { about: 'The user of the key.', scopes: BOTH },
  projects: {
    about: 'What belongs together: keys, endpoints, sources, events, and settings of all of them.',
    scopes: BOTH,
  },
  summary: { about: 'What is the matter now.', scopes: ['read'] },
  health: {
    about: 'The state of a project, with its problems in order of harm.',
    scopes: ['read'],
  },
  activity: { about: 'What happened when, for charts.', scopes: ['read'] },
  apiKeys: { about: 'Of a project.', scopes: BOTH, isRouting: false },
  portalLinks: {
    about: 'With which the owners of endpoints see what is theirs.',
    scopes: BOTH,
    isRouting: false,
  },
  notificationChannels: {
    about:
      'Slack, Microsoft Teams, PagerDuty, Opsgenie and webhooks that notifications are sent to.',
    scopes: BOTH,
    isRouting: false,
  },
  portal: { about: 'What the portal link of a request reaches.', scopes: [] },
  auditLog: { about: 'Who changed what.', scopes: ['read'] },
  endpoints: { about: 'Where events are delivered, and how.', scopes: BOTH },
  subscriptions: { about: 'Which events an endpoint gets.', scopes: BOTH },
  sources: { about: 'Queues and topics that events come from.', scopes: BOTH },
  eventTypes: { about: 'What events there are, with their schemas.', scopes: BOTH },
  events: {
    about: 'What happened: created here, or accepted from a source.',
    scopes: BOTH,
    isRouting: false,
  },
  eventDeliveries: {
    about: 'An event on its way to one endpoint, with its attempts.',
    scopes: BOTH,
    isRouting: false,
  },
  issues: {
    about: 'Failures of endpoints, grouped by the kind of error.',
    scopes: BOTH,
    isRouting: false,
  },
  quarantine: { about: 'Messages that could not be accepted.', scopes: BOTH, isRouting: false },
  instance: {
    about: 'Plugins, flags, licence, settings and health of the instance, for who runs it.',
    scopes: ['read'],
  },
};

export const SCOPES: readonly string[] = Object.entries(RESOURCES).flatMap(([name, { scopes }]) =>
  scopes.map((it) => `${name}:${it}`),
);

/** Names that paths write in lower case without separators. */
const COMPOUND = {
  eventdeliveries: 'eventDeliveries',
  deliveryattempts: 'deliveryAttempts',
} as Readonly<Record<string, string>>;

export function camel(text: string): string {
  return (COMPOUND[text] ?? text).replaceAll(/[-_](\w)/g, (_, letter: string) =>
    letter.toUpperCase(),
  );
}
