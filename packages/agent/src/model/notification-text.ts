import { linksOf, type Config } from '@gateway/core/config';
import { maskUrls } from '@gateway/core/logging';
import type { ClaimedNotification } from '@gateway/store/config';

/** A notification as messages tell of it. */
export type Told = Omit<ClaimedNotification, 'attempts' | 'admins'>;

const LISTED_MAX = 50;

/** For a message with several notifications of one kind. */
const SEVERAL: Readonly<Record<Told['kind'], readonly [subject: string, opening: string]>> = {
  endpoint_disabled: [
    'endpoints are disabled',
    'They answered 410 Gone, or failed for longer than the project allows. They were set inactive, and their deliveries are discarded.',
  ],
  endpoint_disabling: [
    'endpoints will be disabled',
    'All their delivery attempts have failed. They are disabled at the time given unless an attempt succeeds.',
  ],
  endpoint_failing: [
    'endpoints are failing',
    'Their last delivery attempts have all failed. Deliveries are retried by the retry policy of each.',
  ],
  endpoint_breaker: [
    'circuit breakers are open',
    'Their endpoints fail, and receive nothing until a probe succeeds. Their deliveries wait.',
  ],
  endpoint_exhausted: [
    'endpoints have deliveries without a retry left',
    'These deliveries have failed and are not retried.',
  ],
  source_failing: [
    'sources are failing',
    'They cannot be read, or are paused because their functions overrun. Their messages stay with the brokers, and the gateway tries again.',
  ],
  source_lost: [
    'partitions of sources have lost messages',
    'The brokers deleted messages before the gateway read them. It continues with the oldest remaining message.',
  ],
};

export type TextConfig = Pick<Config, 'host' | 'root_path' | 'server' | 'env'>;

/**
 * For notifications of one kind and organisation or project, without event data. `facts` has an entry for each
 * of the first fifty.
 */
export function notificationParts(
  notifications: readonly Told[],
  config: TextConfig,
): {
  subject: string;
  opening: string;
  facts: readonly (readonly Fact[])[];
  advice: readonly string[];
} {
  const count = notifications.length;
  const contents = notifications.slice(0, LISTED_MAX).map((it) => contentOf(it, config));
  const [{ kind, organisation, project, projectId }, first] = [notifications[0]!, contents[0]!];
  const [what, opening] = SEVERAL[kind];
  const about = `${count} ${what}`;
  const place =
    organisation === null ? `project ${project ?? projectId}` : `organisation ${organisation}`;
  return {
    subject: oneLine(count === 1 ? first.subject : `${about}, ${place}`),
    opening: count === 1 ? first.opening : `${about}. ${opening}`,
    facts: contents.map(({ facts }) => facts.map(([name, value]): Fact => [name, oneLine(value)])),
    advice: first.advice,
  };
}

/** For notifications of one kind and organisation, without event data. */
export function notificationText(
  notifications: readonly Told[],
  config: TextConfig,
): { subject: string; text: string } {
  const count = notifications.length;
  const { subject, opening, facts, advice } = notificationParts(notifications, config);
  const blocks = [
    opening,
    ...facts.map(factLines),
    ...(count > LISTED_MAX
      ? [`And ${count - LISTED_MAX} more, listed in the logs of the agents.`]
      : []),
    `What to do${count === 1 ? '' : ', of the first of them'}\n\n${advice.join('\n\n')}`,
    `Sent by the gateway, environment ${config.env}.`,
  ];
  return { subject: `[gateway] ${subject}`, text: `${blocks.join('\n\n')}\n` };
}

export type Fact = readonly [name: string, value: string];

function contentOf(
  it: Told,
  config: TextConfig,
): { subject: string; opening: string; facts: readonly Fact[]; advice: readonly string[] } {
  const { facts, kind, projectId } = it;
  const [id = ''] = it.subject.split(' ');
  const name = oneLine(it.name ?? id);
  const project = oneLine(it.project ?? projectId);
  const since: Fact = ['Since', time(facts.since ?? it.createdAt.toISOString())];
  const error: Fact[] = facts.error === undefined ? [] : [['Last error', maskUrls(facts.error)]];
  const path = `/api/v1/projects/${projectId}`;
  const where = (label: string, collection: string, url: Fact[] = []): Fact[] => [
    ...(it.organisation === null ? [] : [['Organisation', it.organisation] as Fact]),
    ['Project', `${project} (${projectId})`],
    [label, `${name} (${id})`],
    ...url,
    ...linkTo(config, `${path}/${collection}/${id}`),
  ];
  const endpoint = () => where('Endpoint', 'endpoints', [['URL', maskUrls(it.url ?? '')]]);
  const retry = (status: 'failure' | 'discarded') =>
    `  gateway retry --status ${status} --time 24h --project-id ${projectId} --endpoint-id ${id}`;
  switch (kind) {
    case 'endpoint_disabled': {
      const isGone = facts.disable_after_days === undefined;
      return {
        subject: `Endpoint ${name} of project ${project} is disabled`,
        opening: isGone
          ? 'An endpoint answered 410 Gone: it does not want more events. It was set inactive, and its deliveries are discarded.'
          : `All delivery attempts to an endpoint have failed for ${facts.disable_after_days} days. It was set inactive, and its deliveries are discarded.`,
        facts: [...endpoint(), ...error, since],
        advice: [
          'If this is intended, delete the endpoint or do nothing. If not, ask its owner to correct the response, activate the endpoint again with',
          `  PUT ${path}/endpoints/${id}/activate`,
          'and resend the deliveries discarded meanwhile:',
          retry('discarded'),
        ],
      };
    }
    case 'endpoint_disabling':
      return {
        subject: `Endpoint ${name} of project ${project} will be disabled`,
        opening: `All delivery attempts to an endpoint have failed. After ${facts.disable_after_days} days without a success it is disabled, and its deliveries are then discarded.`,
        facts: [...endpoint(), since, ['Disabled', time(facts.disabled_at ?? '')]],
        advice: [
          'Check that the URL is correct and answers with a 2xx status. One successful attempt, or an update of the endpoint, cancels this.',
        ],
      };
    case 'endpoint_failing':
      return {
        subject: `Endpoint ${name} of project ${project} is failing`,
        opening: `${facts.failures} delivery attempts in a row have failed. Deliveries are retried by the retry policy of the endpoint; nothing is lost until it ends.`,
        facts: [...endpoint(), ...error, since],
        advice: [
          'Check that the URL is correct and answers with a 2xx status. Resend deliveries that have finally failed with',
          retry('failure'),
          'List its failures by kind of error with',
          `  gateway utils issues list --project-id ${projectId}`,
          'You get the next email about this endpoint when it has recovered and fails again.',
        ],
      };
    case 'endpoint_breaker':
      return {
        subject: `The circuit breaker of endpoint ${name} of project ${project} is open`,
        opening:
          'Too many requests to an endpoint failed. It receives nothing until a probe succeeds; its deliveries wait, and none is lost.',
        facts: [...endpoint(), ['Failed requests', String(facts.failures)], ...error, since],
        advice: [
          'See that the URL is right and answers with a status of 2xx. The breaker closes when a probe succeeds. Close it at once with',
          `  POST ${path}/endpoints/${id}/reset_circuit_breaker`,
        ],
      };
    case 'endpoint_exhausted':
      return {
        subject: `Deliveries to endpoint ${name} of project ${project} have failed for good`,
        opening: `${facts.deliveries} ${facts.deliveries === 1 ? 'delivery has' : 'deliveries have'} no retry left.`,
        facts: [
          ...endpoint(),
          ['Deliveries', String(facts.deliveries)],
          ['First delivery', facts.delivery_id ?? ''],
          ...error,
          since,
        ],
        advice: [
          'When the endpoint answers well again, retry them with',
          retry('failure'),
          'The next email about this endpoint comes an hour later at the earliest.',
        ],
      };
    case 'source_failing':
      if (facts.resumes_at === undefined)
        return {
          subject: `Source ${name} of project ${project} is failing`,
          opening:
            'A source cannot be read. Its messages stay with the broker, and the gateway tries again.',
          facts: [...where('Source', 'sources'), ...error, since],
          advice: [
            'Check the broker and the connection of the source. The errors are in the logs of the agents and on /healthz. Check settings and brokers with',
            '  gateway utils doctor',
            'You get the next email about this source when it has recovered and fails again.',
          ],
        };
      return {
        subject: `Source ${name} of project ${project} is paused`,
        opening:
          'The transform function of a source repeatedly exceeded its time or memory limit. The source is not read for a while; its messages stay at the broker. The messages that caused it are in quarantine.',
        facts: [
          ...where('Source', 'sources'),
          ['Reason', maskUrls(facts.error ?? '')],
          since,
          ['Tried again', time(new Date(facts.resumes_at).toISOString())],
        ],
        advice: [
          'Test the function with one of the quarantined messages, and correct it; the source then resumes at once:',
          `  gateway utils transform --source-id ${id} --sample message.json\n  PUT ${path}/sources/${id}`,
          'Or resume the source without a change:',
          `  POST ${path}/sources/${id}/resume`,
          'Each further overrun doubles the pause, up to an hour, without another email.',
        ],
      };
    case 'source_lost':
      return {
        subject: `Source ${name} of project ${project} has lost messages`,
        opening:
          'A broker deleted messages of a source before the gateway read them. It continues with the oldest remaining message.',
        facts: [
          ...where('Source', 'sources'),
          ['Partition', facts.partition ?? ''],
          ['Messages', `up to ${facts.messages}`],
          since,
        ],
        advice: [
          'Ask the producer to resend the missing messages. Keep messages for longer than the gateway may be down or behind: raise the retention of the topic, and watch gateway_source_lag_messages.',
          'You get the next email about this partition after an hour at the earliest.',
        ],
      };
  }
}

function factLines(facts: readonly Fact[]): string {
  const width = Math.max(...facts.map(([name]) => name.length + 2));
  return facts.map(([name, value]) => `${`${name}:`.padEnd(width)}${value}`).join('\n');
}

function linkTo(config: TextConfig, path: string): Fact[] {
  return config.host === undefined ? [] : [['Link', linksOf(config).base + path]];
}

function time(iso: string): string {
  return `${iso.slice(0, 19).replace('T', ' ')} UTC`;
}

/**
 * Removes characters that could break a line or a header, or change the order of text: line breaks,
 * control characters and invisible ones, except the joiners of emoji and scripts.
 */
export function oneLine(text: string): string {
  return text
    .toWellFormed()
    .replace(/(?![\u200c\u200d])\p{Cf}/gu, '')
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
}
