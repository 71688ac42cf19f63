import { clip } from '@gateway/core/json';
import { INVISIBLE, type Preset, type ServiceMessage } from './message.js';

/** The kinds that page nobody at night; those of the gateway that are not here are errors. */
const SEVERITY: Readonly<Record<string, 'warning'>> = {
  endpoint_disabling: 'warning',
  endpoint_exhausted: 'warning',
};
const OPSGENIE_MESSAGE_MAX = 130;

// Ordinary events and tests have no facts.
const severityOf = ({ kind, facts }: ServiceMessage) =>
  facts.length === 0 ? 'info' : (SEVERITY[kind] ?? 'error');

/** An alert has one list of facts, so those of several notifications are numbered. */
const factsOf = ({ facts }: ServiceMessage, shown = (value: string) => value) =>
  Object.fromEntries(
    facts.flatMap((of, n) =>
      of.map(([name, value]) => [n === 0 ? name : `${name} ${n}`, shown(value)]),
    ),
  );

/** https://developer.pagerduty.com/docs/events-api-v2/trigger-events/ */
export const pagerduty: Preset = {
  request(message, { url, key }) {
    const { id, kind, isRecovery, subject, opening, at, project, env } = message;
    const payload = {
      summary: subject,
      source: `gateway ${env}`,
      severity: severityOf(message),
      timestamp: at,
      component: project,
      class: kind,
      custom_details: { description: opening, ...factsOf(message) },
    };
    return {
      url: below(url, '/v2/enqueue'),
      body: {
        routing_key: key,
        event_action: isRecovery ? 'resolve' : 'trigger',
        dedup_key: id,
        ...(!isRecovery && { payload, client: 'gateway' }),
      },
    };
  },
};

/** https://docs.opsgenie.com/docs/alert-api */
export const opsgenie: Preset = {
  request(message, { url, key }) {
    const { id, kind, isRecovery, subject, opening, env } = message;
    const source = `gateway ${env}`;
    const headers = ['authorization', `GenieKey ${key}`];
    if (isRecovery)
      return {
        url: below(url, `/v2/alerts/${encodeURIComponent(id)}/close?identifierType=alias`),
        headers,
        body: { source, note: plainInHtml(subject) },
      };
    return {
      url: below(url, '/v2/alerts'),
      headers,
      body: {
        message: plainInHtml(clip(subject, OPSGENIE_MESSAGE_MAX)),
        alias: id,
        description: plainInHtml(opening),
        details: factsOf(message, plainInHtml),
        tags: ['gateway', kind],
        source,
        priority: { info: 'P5', warning: 'P3', error: 'P2' }[severityOf(message)],
      },
    };
  },
};

/** Opsgenie shows messages as HTML in some places and as text in others. */
function plainInHtml(text: string): string {
  return text.replace(/[<&](?=[a-z/!?#])/gi, `$&${INVISIBLE}`);
}

/** Keeps the region that the origin of the endpoint names. */
function below(url: string, path: string): string {
  return new URL(url).origin + path;
}
